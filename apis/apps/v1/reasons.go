package v1

// Reasons of the conditions that every claim has, and of its events.
const (
	// ReasonAccepted means that the claim and the installation's settings are valid.
	// +storeplane:of=every claim: Accepted
	ReasonAccepted = "Accepted"

	// ReasonInvalid means that the claim, or the installation's settings, are invalid, and nothing
	// was changed: correct the field that the message names.
	// +storeplane:of=every claim: Accepted, Stalled, event
	ReasonInvalid = "Invalid"

	// ReasonAlreadyExists means that an object that is not part of the claim has the name of one of
	// its objects, and nothing was changed: choose another name, delete the object, or set the
	// annotation that the message shows.
	// +storeplane:of=every claim: Accepted, Stalled, event
	ReasonAlreadyExists = "AlreadyExists"

	// ReasonSettingsInvalid means that the data of EnvironmentConfig storeplane is invalid, and the
	// claim is composed with the settings before: correct what the message names.
	// +storeplane:of=every claim: Accepted
	ReasonSettingsInvalid = "SettingsInvalid"

	// ReasonInternalError means that Storeplane has a bug, and nothing was changed: report it with
	// the function's log.
	// +storeplane:of=every claim: Accepted, Stalled, event
	ReasonInternalError = "InternalError"

	// ReasonPruned means that no object is left that is no longer part of the claim.
	// +storeplane:of=every claim: Pruned
	ReasonPruned = "Pruned"

	// ReasonHoldsData means that objects that are no longer part of the claim stay, since they hold
	// data: delete them by hand once it is not needed.
	// +storeplane:of=every claim: Pruned
	ReasonHoldsData = "HoldsData"

	// ReasonUpgraded means that the claim's pods are those of the installation's release and
	// settings.
	// +storeplane:of=every claim: Upgraded
	ReasonUpgraded = "Upgraded"

	// ReasonUpgrading means that a release or settings are being applied, and something of the claim
	// waits for another part of it, or is refused by the API server: see the claim's message.
	// +storeplane:of=every claim: Upgraded
	ReasonUpgrading = "Upgrading"

	// ReasonAwaitingWave means that a release or settings change the claim's pods, and wait until the
	// claims of earlier waves are upgraded: nothing is to be done, or set the annotation that the
	// message shows.
	// +storeplane:of=every claim: Upgraded
	ReasonAwaitingWave = "AwaitingWave"

	// ReasonAwaitingMaintenance means that a release or settings change the claim's pods, and wait
	// for the maintenance window: nothing is to be done, or set the annotation that the message shows.
	// +storeplane:of=every claim: Upgraded
	ReasonAwaitingMaintenance = "AwaitingMaintenance"

	// ReasonNotStalled means that nothing keeps the claim from becoming Ready, or being so, by itself.
	// +storeplane:of=every claim: Stalled
	ReasonNotStalled = "NotStalled"
)

// Reasons of the conditions of a claim's components.
const (
	// ReasonHealthy means that what the condition is about is healthy.
	// +storeplane:of=EcommercePlatform: DatabaseReady, CacheReady, BackendReady, FrontendReady, IngressReady, ConfigReady
	// +storeplane:of=WebApp: ConfigReady, MigrationReady
	// +storeplane:of=DatabaseCluster: BackupHealthy, ReplicationHealthy, StorageHealthy
	ReasonHealthy = "Healthy"

	// ReasonWaiting means that the component is not healthy yet: status.components shows what it
	// waits for.
	// +storeplane:of=EcommercePlatform: DatabaseReady, CacheReady, BackendReady, FrontendReady, IngressReady, ConfigReady
	// +storeplane:of=WebApp: ConfigReady, MigrationReady
	ReasonWaiting = "Waiting"

	// ReasonFailed means that the component does not become healthy without a change: read the
	// message.
	// +storeplane:of=EcommercePlatform: DatabaseReady, CacheReady, BackendReady, FrontendReady, IngressReady, ConfigReady
	// +storeplane:of=WebApp: ConfigReady, MigrationReady
	// +storeplane:of=every claim: Stalled
	ReasonFailed = "Failed"

	// ReasonDisabled means that the claim does not declare what the condition is about.
	// +storeplane:of=EcommercePlatform: DatabaseReady, CacheReady, BackendReady, FrontendReady, IngressReady, ConfigReady
	// +storeplane:of=WebApp: ConfigReady, MigrationReady
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, BackupHealthy
	ReasonDisabled = "Disabled"
)

// Reasons of the conditions of a DatabaseCluster.
const (
	// ReasonHibernated means that all servers are stopped, as the claim declares.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, ReplicationHealthy
	ReasonHibernated = "Hibernated"

	// ReasonPending means that the instance manager, the archive or the first backup has not
	// reported yet: wait some minutes while the cluster starts.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, BackupHealthy, ParametersApplied, DatabasesReady
	ReasonPending = "Pending"

	// ReasonRepositoryNotReady means that the repository of the backups cannot be set up: check the
	// store, its credentials and its bucket; the message has pgBackRest's error.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, BackupHealthy, event
	ReasonRepositoryNotReady = "RepositoryNotReady"

	// ReasonArchiving means that WAL, or with engine mysql the binary log, reaches the archive.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy
	ReasonArchiving = "Archiving"

	// ReasonFailing means that WAL, or with engine mysql the binary log, does not reach the archive, so
	// that what is written since cannot be restored and accumulates on the volume: the message has
	// the error.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, BackupHealthy
	ReasonFailing = "Failing"

	// ReasonRepositoryFull means that WAL does not reach the archive, since the volume of the
	// backups is full: wait for the Job that the message names, or raise backup.storageSize.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, BackupHealthy
	ReasonRepositoryFull = "RepositoryFull"

	// ReasonArchiveGap means that WAL, or with engine mysql binary logs, were lost before they were
	// archived, or are too large for it, or the store holds no backup: what was written after that can
	// be restored once another backup is created, which starts automatically. The event, of engine mysql
	// alone, means that the data lacks what is archived of it, as an older state of a volume does, and
	// counts as another history.
	// +storeplane:of=DatabaseCluster: ArchivingHealthy, BackupHealthy, event
	ReasonArchiveGap = "ArchiveGap"

	// ReasonBackupProviderNotInstalled means that no provider verifies backups, or makes them where
	// they are dumps: install provider-storeplane.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonBackupProviderNotInstalled = "BackupProviderNotInstalled"

	// ReasonNoDestination means that the environment has backups by default, and no place for them is
	// known: set backup.destination or the installation's, or backup.enabled to false. With engine
	// postgresql they are then on a volume of their own.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonNoDestination = "NoDestination"

	// ReasonBackupFailed means that the last backup failed, though an older one may be good: the
	// message has the error.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonBackupFailed = "BackupFailed"

	// ReasonNotRestorable means that a backup was verified by a restore, and is not good: create
	// another one, and find out what damaged the store.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonNotRestorable = "NotRestorable"

	// ReasonRepositoryTooSmall means that there is a good backup, and its volume cannot hold what
	// backup.retention declares, so that the oldest expire early: raise backup.storageSize to the
	// size in the message.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonRepositoryTooSmall = "RepositoryTooSmall"

	// ReasonStoredInCluster means that there is a good backup, and it is on a volume of the same
	// cluster: set backup.destination, or the installation's.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonStoredInCluster = "StoredInCluster"

	// ReasonNotEncrypted means that there is a good backup, and that backups in the platform's store
	// are encrypted by default, but the repository of these has no key: to encrypt them, name
	// another backup.destination, with backup.encryption.
	// +storeplane:of=DatabaseCluster: BackupHealthy
	ReasonNotEncrypted = "NotEncrypted"

	// ReasonSingleServer means that the cluster has one server, so that there is no replication.
	// +storeplane:of=DatabaseCluster: ReplicationHealthy
	ReasonSingleServer = "SingleServer"

	// ReasonLeaderUndecided means that it is not clear which volume holds the newest data,
	// so that no server leads: the message has the annotation that names one. The event is of
	// engine postgresql alone.
	// +storeplane:of=DatabaseCluster: ReplicationHealthy, event
	ReasonLeaderUndecided = "LeaderUndecided"

	// ReasonNoPrimary means that no server takes writes.
	// +storeplane:of=DatabaseCluster: ReplicationHealthy
	ReasonNoPrimary = "NoPrimary"

	// ReasonNoSynchronousStandby means that synchronous replication is declared, and there is no
	// synchronous standby: writes are blocked with synchronousMode strict, and on one server only
	// with quorum.
	// +storeplane:of=DatabaseCluster: ReplicationHealthy
	ReasonNoSynchronousStandby = "NoSynchronousStandby"

	// ReasonStandbyMissing means that the named servers do not follow the primary.
	// +storeplane:of=DatabaseCluster: ReplicationHealthy
	ReasonStandbyMissing = "StandbyMissing"

	// ReasonLagging means that the named servers are more than 16 MiB behind the primary, or with
	// engine mysql have more than 25,000 transactions to apply.
	// +storeplane:of=DatabaseCluster: ReplicationHealthy
	ReasonLagging = "Lagging"

	// ReasonNearlyFull means that a volume is filled to more than 80 percent: raise storageSize.
	// +storeplane:of=DatabaseCluster: StorageHealthy
	ReasonNearlyFull = "NearlyFull"

	// ReasonFull means that a volume is filled to more than 90 percent: raise storageSize now, since
	// PostgreSQL stops when it is full, and a MySQL from which no other server takes over
	// acknowledges no write.
	// +storeplane:of=DatabaseCluster: StorageHealthy
	ReasonFull = "Full"

	// ReasonVolumeResizeFailed means that a volume cannot be expanded: the message has the API
	// server's error, mostly of a StorageClass without allowVolumeExpansion or of a quota.
	// +storeplane:of=DatabaseCluster: StorageHealthy
	ReasonVolumeResizeFailed = "VolumeResizeFailed"

	// ReasonApplied means that all parameters, or all databases and users, are in sync with the
	// claim.
	// +storeplane:of=DatabaseCluster: ParametersApplied, DatabasesReady
	ReasonApplied = "Applied"

	// ReasonParametersRefused means that the server does not accept the named parameters, and all
	// others are applied: correct them.
	// +storeplane:of=DatabaseCluster: ParametersApplied, event
	ReasonParametersRefused = "ParametersRefused"

	// ReasonReconcileFailed means that the named databases or users could not be reconciled: the
	// message has the server's error.
	// +storeplane:of=DatabaseCluster: DatabasesReady
	ReasonReconcileFailed = "ReconcileFailed"
)

// Reasons of the events of a DatabaseCluster.
const (
	// ReasonPromoted means that a server has become primary.
	// +storeplane:of=DatabaseCluster: event
	ReasonPromoted = "Promoted"

	// ReasonRollingUpdate means that a server is replaced or restarted, or the primary hands over
	// for that.
	// +storeplane:of=DatabaseCluster: event
	ReasonRollingUpdate = "RollingUpdate"

	// ReasonVolumeFull means that a server of MySQL has left its group, since its volume is full and
	// the others can go on without it: raise storageSize.
	// +storeplane:of=DatabaseCluster: event
	ReasonVolumeFull = "VolumeFull"

	// ReasonVolumeResize means that a volume is expanded.
	// +storeplane:of=DatabaseCluster: event
	ReasonVolumeResize = "VolumeResize"

	// ReasonReplicaReinitializing means that a replica that can never follow again copies the
	// primary.
	// +storeplane:of=DatabaseCluster: event
	ReasonReplicaReinitializing = "ReplicaReinitializing"

	// ReasonBootstrapRetried means that the initialization of a new cluster is retried, since the
	// server that had begun it is gone.
	// +storeplane:of=DatabaseCluster: event
	ReasonBootstrapRetried = "BootstrapRetried"

	// ReasonVolumesCompared means that the retained volumes were compared, and the named server
	// leads with the newest data. It is of engine postgresql alone.
	// +storeplane:of=DatabaseCluster: event
	ReasonVolumesCompared = "VolumesCompared"

	// ReasonDataSetAside means that a server copies the primary, or is rewound to it, and had data
	// of its own: the message names the folder that holds it, unless the others have all of it and there
	// was no room for both.
	// +storeplane:of=DatabaseCluster: event
	ReasonDataSetAside = "DataSetAside"

	// ReasonDatabaseReconcileFailed means that a database could not be reconciled: the message has
	// the server's error.
	// +storeplane:of=DatabaseCluster: event
	ReasonDatabaseReconcileFailed = "DatabaseReconcileFailed"

	// ReasonRoleReconcileFailed means that a user could not be reconciled: the message has
	// the server's error.
	// +storeplane:of=DatabaseCluster: event
	ReasonRoleReconcileFailed = "RoleReconcileFailed"

	// ReasonPodFailing means that a server's pod does not start, is not ready, or did not come back
	// from a restart: the message has the cause.
	// +storeplane:of=DatabaseCluster: event
	ReasonPodFailing = "PodFailing"
)
