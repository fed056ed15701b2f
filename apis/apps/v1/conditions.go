package v1

// Types of the conditions of every claim.
const (
	// TypeAccepted is False while the claim, or the installation's settings, request something that
	// is not possible. What runs stays as it is.
	TypeAccepted = "Accepted"

	// TypePruned is False while objects that are no longer part of the claim stay because they hold
	// data.
	TypePruned = "Pruned"

	// TypeUpgraded is False while changes of a release wait for their time or are being applied.
	TypeUpgraded = "Upgraded"

	// TypeStalled is True while waiting does not help: the claim has failed, or is refused. Managed
	// resources have it too.
	TypeStalled = "Stalled"

	// TypeResponsive is set by Crossplane. It is False while a claim changes so often that
	// Crossplane reconciles it at intervals alone.
	TypeResponsive = "Responsive"
)

// Types of the conditions of a WebApp. The first one is that of an EcommercePlatform too, and
// reports whether the config is rolled out.
const (
	TypeConfigReady    = "ConfigReady"
	TypeMigrationReady = "MigrationReady"
)

// Types of the conditions of a DatabaseCluster.
const (
	TypeBackupHealthy      = "BackupHealthy"
	TypeArchivingHealthy   = "ArchivingHealthy"
	TypeReplicationHealthy = "ReplicationHealthy"
	TypeStorageHealthy     = "StorageHealthy"
	TypeParametersApplied  = "ParametersApplied"
	TypeDatabasesReady     = "DatabasesReady"
)
