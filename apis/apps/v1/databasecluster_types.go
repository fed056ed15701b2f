package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Engine of a database.
//
// +kubebuilder:validation:Enum=postgresql;mysql
type Engine string

// The database engines.
const (
	PostgreSQL Engine = "postgresql"
	MySQL      Engine = "mysql"
)

// Version of a database engine: major, major.minor or major.minor.patch, for
// example 17, 17.2 or 17.2.0.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+){0,2}$`
type Version string

// DatabaseClusterSpec is a replicated database.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.storageSize) || has(self.storageSize)",message="storageSize may not be removed once it is set, since volumes may not shrink"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.storageClassName) == has(self.storageClassName)",message="storageClassName is immutable"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.restoreFrom) == has(self.restoreFrom)",message="restoreFrom is immutable"
type DatabaseClusterSpec struct {
	DatabaseOptions `json:",inline"`

	// Size is the number of database servers: one primary, the others its
	// replicas. With engine mysql it is 1, 3, 5 or 7.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Size int32 `json:"size"`

	// Version of the engine: 17, 17.2 or 17.2.0. The major of PostgreSQL is
	// 14 to 18. Of MySQL it is 9.7 or 9.7.4.
	Version Version `json:"version"`

	// Engine of the database. It cannot be changed.
	// +optional
	// +kubebuilder:default=postgresql
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="engine is immutable: claim a new DatabaseCluster and move the data"
	Engine Engine `json:"engine,omitempty"`

	// Environment whose defaults apply.
	// +optional
	// +kubebuilder:default=development
	Environment Environment `json:"environment,omitempty"`

	// Maintenance is when a new release of Storeplane, or new settings of the installation, may
	// replace the claim's pods. Defaults to the installation's window for the environment, and
	// without one to any time.
	// +optional
	Maintenance *Maintenance `json:"maintenance,omitempty"`

	// StorageSize of each server's volume, as a Kubernetes quantity. It may
	// grow, never shrink. Defaults to 10Gi in development, 50Gi in staging,
	// 100Gi in production.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="storageSize must be a quantity above zero, like 20Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(self) || !isQuantity(oldSelf) || quantity(self).compareTo(quantity(oldSelf)) >= 0",message="storageSize may not shrink",messageExpression="'storageSize may not shrink: ' + oldSelf + ' to ' + self"
	StorageSize string `json:"storageSize,omitempty"`

	// Monitoring of the database servers.
	// +optional
	// +kubebuilder:default={}
	Monitoring *Monitoring `json:"monitoring,omitempty"`

	// Hibernated stops the database servers and keeps their volumes.
	// +optional
	Hibernated bool `json:"hibernated,omitempty"`

	// DeletionProtection refuses the claim's deletion until it is set to
	// false. Defaults to true in production, else false.
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`

	// Clients restricts who reaches the database to pods of the same
	// namespace that carry all of these labels. Without it, all pods of the
	// namespace do.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Clients map[string]string `json:"clients,omitempty"`
}

// DatabaseOptions are what a DatabaseCluster and the database of an
// EcommercePlatform offer alike.
type DatabaseOptions struct {
	PodOptions `json:",inline"`

	// StorageClassName of the volumes. Defaults to the installation's
	// setting, else to the cluster's default class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="storageClassName is immutable"
	StorageClassName string `json:"storageClassName,omitempty"`

	// Resources of each database server's container, as in core/v1. Defaults
	// to what the environment gives.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// Parameters of the engine, for example work_mem: 16MB. Those that
	// Storeplane itself sets, like listen_addresses or ssl, are refused.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	Parameters map[string]string `json:"parameters,omitempty"`

	// Synchronous replication: a commit is acknowledged once a replica has
	// it too. Defaults to true in production, else false. It needs a size of
	// at least 2. Several servers of engine mysql always are synchronous.
	// +optional
	Synchronous *bool `json:"synchronous,omitempty"`

	// SynchronousMode is what happens to writes while no replica can
	// acknowledge them: quorum continues without one, and no replica that lacks
	// such a write is promoted automatically; strict blocks them. Either way the
	// acknowledgement of any one synchronous replica is enough. Engine mysql has
	// quorum alone: a majority of its servers acknowledges each write.
	// +optional
	// +kubebuilder:default=quorum
	SynchronousMode SynchronousMode `json:"synchronousMode,omitempty"`

	// TLS of the connections to the database.
	// +optional
	// +kubebuilder:default={}
	TLS *DatabaseTLS `json:"tls,omitempty"`

	// Databases beside the default one, app.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Databases []Database `json:"databases,omitempty"`

	// Users beside the default one, app.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	Users []DatabaseUser `json:"users,omitempty"`

	// Backup of the whole cluster. Defaults to what the environment gives.
	// +optional
	Backup *DatabaseBackup `json:"backup,omitempty"`

	// RestoreFrom fills a new cluster from a backup. It cannot be changed, except
	// that systemIdentifier and id can be added.
	// +optional
	RestoreFrom *RestoreFrom `json:"restoreFrom,omitempty"`
}

// SynchronousMode is how strictly a write waits for a replica.
//
// +kubebuilder:validation:Enum=quorum;strict
type SynchronousMode string

// The modes of synchronous replication.
const (
	Quorum SynchronousMode = "quorum"
	Strict SynchronousMode = "strict"
)

// DatabaseTLS defines how connections to the database are encrypted.
type DatabaseTLS struct {
	// Required refuses connections that are not encrypted.
	// +optional
	// +kubebuilder:default=true
	Required *bool `json:"required,omitempty"`

	// SecretName names a Secret of the claim's namespace with tls.crt, tls.key
	// and ca.crt for the servers. Without it the cluster has an authority of
	// its own, and its certificates are renewed in time.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// Identifier of a database or user: lower-case letters, digits and _.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_]*$`
type Identifier string

// Database inside the cluster.
type Database struct {
	// Name of the database.
	Name Identifier `json:"name"`

	// Owner of the database: a user of this claim. Defaults to app.
	// +optional
	Owner Identifier `json:"owner,omitempty"`

	// Extensions to create in the database, for example pg_trgm. Engine mysql has none.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z][a-z0-9_-]*$`
	Extensions []string `json:"extensions,omitempty"`
}

// DatabaseUser is a role that can log in.
type DatabaseUser struct {
	// Name of the role. The Secret to connect with is named
	// <claim>-user-<name>, with hyphens for underscores.
	Name Identifier `json:"name"`

	// PasswordSecretRef names the Secret of the claim's namespace whose key
	// password holds the role's password. Without it one is generated.
	// +optional
	PasswordSecretRef *LocalSecretReference `json:"passwordSecretRef,omitempty"`
}

// LocalSecretReference names a Secret of the claim's own namespace.
type LocalSecretReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DatabaseBackup defines when backups are made, how long they are kept, where.
//
// +kubebuilder:validation:XValidation:rule="has(oldSelf.encryption) == has(self.encryption) || (has(oldSelf.destination) ? !has(self.destination) || self.destination != oldSelf.destination : has(self.destination))",message="backup.encryption can be turned on or off only together with another backup.destination"
// +kubebuilder:validation:XValidation:rule="!has(self.storageSize) || !has(self.destination) || (self.destination.type == 'volume' && !has(self.destination.bucket))",message="backup.storageSize is of the volume claim that Storeplane creates: leave it out, or backup.destination"
type DatabaseBackup struct {
	// Enabled turns backups on or off. Defaults to true in staging and
	// production, else false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Method of the backups of engine mysql. With logical each database is dumped.
	// With physical the files of a server are copied, and all that is written after
	// is archived within a minute, so that any time can be restored to: it needs an
	// object store. Defaults to logical. It can be changed only once the claim's
	// Backup is deleted. Backups of engine postgresql are always physical.
	// +optional
	// +kubebuilder:validation:Enum=logical;physical
	Method string `json:"method,omitempty"`

	// Schedule of backups. Defaults to every day at 02:00. A backup is full
	// where no full one is younger than a week, and else holds only what has
	// changed since the one before; with an incrementalSchedule all are full.
	// Backups of engine mysql are all full.
	// +optional
	// +kubebuilder:default="0 2 * * *"
	Schedule Schedule `json:"schedule,omitempty"`

	// IncrementalSchedule of backups that hold only what has changed since the
	// backup before. With it, those of schedule are all full. For engine postgresql.
	// +optional
	IncrementalSchedule Schedule `json:"incrementalSchedule,omitempty"`

	// Retention is the age at which a backup expires: a number of days,
	// weeks or months like 30d, 4w, 12m. On a volume, with engine postgresql,
	// the oldest expire earlier where there is no room for the next one.
	// +optional
	// +kubebuilder:default="30d"
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*[dwm]$`
	Retention string `json:"retention,omitempty"`

	// StorageSize of the volume claim that is created for the backups where no
	// destination names another place, a quantity like 500Gi. It may grow, not
	// shrink. Defaults to five times the storageSize of the database. For
	// engine postgresql.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="backup.storageSize must be a quantity above zero, like 500Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(self) || !isQuantity(oldSelf) || quantity(self).compareTo(quantity(oldSelf)) >= 0",message="backup.storageSize may not shrink",messageExpression="'backup.storageSize may not shrink: ' + oldSelf + ' to ' + self"
	StorageSize string `json:"storageSize,omitempty"`

	// Destination of the backups. Defaults to the installation's setting,
	// and else, with engine postgresql, to a volume claim of their own. Without
	// either engine mysql has no backups.
	// +optional
	Destination *BackupDestination `json:"destination,omitempty"`

	// Encryption of the backups and the archived log before they leave their
	// pods. Without it they are as safe as the store. It can be turned on or
	// off only together with another destination.
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// BackupEncryption names the key of encrypted backups. They cannot be restored
// without it: keep a copy elsewhere.
type BackupEncryption struct {
	// SecretRef names the key: a passphrase with engine postgresql, and with
	// mysql an age identity (AGE-SECRET-KEY-1…, see https://age-encryption.org).
	SecretRef SecretKeyReference `json:"secretRef"`
}

// SecretKeyReference names a key of a Secret of the claim's own namespace.
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// Key of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// BackupDestination is a place in an object store, or a volume.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'volume' || has(self.bucket)",message="destination.bucket is needed for type s3, gcs and azure"
// +kubebuilder:validation:XValidation:rule="self.type != 'volume' || !has(self.endpoint) && !has(self.region) && !has(self.secretRef)",message="destination.endpoint, region and secretRef are for object stores, not for type volume"
type BackupDestination struct {
	// Type of the store.
	// +kubebuilder:validation:Enum=s3;gcs;azure;volume
	Type string `json:"type"`

	// Bucket (s3, gcs), container (azure) or volume claim of the claim's
	// namespace (volume). It must exist. Type volume creates a claim of its own
	// without it, with engine postgresql.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9][A-Za-z0-9._-]*)?$')",message="destination.bucket may only have letters, digits, dots, hyphens and underscores"
	Bucket string `json:"bucket,omitempty"`

	// Prefix of all names in the bucket. The backups of a cluster lie under
	// <prefix>/<namespace>/<name of the claim>, and with engine mysql under
	// <prefix>/<namespace>/<name of the Backup>.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.contains('..') && !self.contains('//')",message="destination.prefix must be a relative path like team/backups"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9!_.=@+-]+/?)*$')",message="destination.prefix may only have letters, digits, slashes and !_.=@+-"
	Prefix string `json:"prefix,omitempty"`

	// Endpoint URL of a store that is not the cloud provider's own. It begins
	// with https://, since pgBackRest speaks to object stores by TLS alone.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https://[A-Za-z0-9.:_\[\]-]+/?$`
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the bucket.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]*$')",message="destination.region may only have letters, digits and hyphens"
	Region string `json:"region,omitempty"`

	// SecretRef names the Secret with the store's credentials. Its keys are
	// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for s3; credentials.json for
	// gcs; AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY or
	// AZURE_STORAGE_SAS_TOKEN for azure. Its ca.crt, if it has one, is the
	// authority of an endpoint that no public one has signed.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
}

// RestoreFrom names a Backup, or a place where one lies.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupRef) != has(self.destination)",message="restoreFrom needs either a backupRef or a destination"
// +kubebuilder:validation:XValidation:rule="!has(self.destination) || has(self.name)",message="restoreFrom.destination needs restoreFrom.name, the name of the DatabaseCluster whose backups lie there, or with engine mysql of the Backup that created them"
// +kubebuilder:validation:XValidation:rule="!has(self.destination) || self.destination.type != 'volume' || has(self.destination.bucket)",message="restoreFrom.destination needs the volume claim that backups lie on, as bucket"
// +kubebuilder:validation:XValidation:rule="has(self.destination) || !has(self.name) && !has(self.__namespace__) && !has(self.encryption)",message="restoreFrom.name, namespace and encryption go with a destination: a Backup has its own"
// +kubebuilder:validation:XValidation:rule="!has(self.time) || !has(self.beforeTransaction)",message="restoreFrom takes a time or beforeTransaction, not both"
// +kubebuilder:validation:XValidation:rule="has(self.backupRef) == has(oldSelf.backupRef) && has(self.destination) == has(oldSelf.destination) && has(self.name) == has(oldSelf.name) && has(self.__namespace__) == has(oldSelf.__namespace__) && has(self.encryption) == has(oldSelf.encryption) && has(self.time) == has(oldSelf.time) && has(self.beforeTransaction) == has(oldSelf.beforeTransaction) && (has(self.systemIdentifier) || !has(oldSelf.systemIdentifier)) && (has(self.id) || !has(oldSelf.id))",message="restoreFrom is immutable, except that systemIdentifier and id can be added"
type RestoreFrom struct {
	// BackupRef names a Backup of the claim's namespace.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	BackupRef *LocalBackupReference `json:"backupRef,omitempty"`

	// Destination where the backups of a cluster lie whose Backup no longer
	// exists. With engine mysql it is an object store.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	Destination *BackupDestination `json:"destination,omitempty"`

	// Name of the DatabaseCluster whose backups lie there, or with engine mysql of
	// the Backup that created them.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="restoreFrom.name may only have small letters, digits, dots and hyphens"
	Name string `json:"name,omitempty"`

	// Namespace of that DatabaseCluster or Backup. Defaults to this claim's. Another one has to
	// grant it by a RestoreGrant, or the platform team by the settings, where the
	// credentials are the platform's.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="restoreFrom.namespace may only have small letters, digits and hyphens"
	Namespace string `json:"namespace,omitempty"`

	// Encryption that those backups have.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// SystemIdentifier of the PostgreSQL cluster to restore, with the suffix that it
	// has if it was restored itself, or of the data with engine mysql. It is needed where backups of several lie in
	// one place, for example those of a DatabaseCluster that was deleted and of a
	// new one of the same name. It can be added later, and then cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom.systemIdentifier is immutable once it is set"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^([0-9]+(-[0-9a-z]+)?|[A-Z2-7]{26})$`
	SystemIdentifier string `json:"systemIdentifier,omitempty"`

	// ID of the backup to restore, as the status of its Backup lists it, for engine
	// mysql. Without a time or beforeTransaction it is restored as it was made. Defaults to the
	// newest, or the newest that was complete by the time, or does not have the transaction. It can be added later, and then cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom.id is immutable once it is set"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]{8}T[0-9]{6}Z-[0-9a-z]+$`
	ID string `json:"id,omitempty"`

	// Time to which the data is restored. Defaults to the latest possible. Engine
	// mysql restores to a time between its backups where its binary logs are archived.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	Time *metav1.Time `json:"time,omitempty"`

	// BeforeTransaction is the GTID of the first transaction that is not restored, nor any
	// after it, for engine mysql where its binary logs are archived: for example that of a
	// DELETE by mistake. It goes without time.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="restoreFrom is immutable"
	// +kubebuilder:validation:MaxLength=96
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[a-z_][a-z0-9_]{0,31})?:[1-9][0-9]{0,18}$`
	BeforeTransaction string `json:"beforeTransaction,omitempty"`
}

// LocalBackupReference names a Backup of the claim's own namespace.
type LocalBackupReference struct {
	// Name of the Backup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// DatabaseClusterPhase is the state of a DatabaseCluster in one word.
//
// +kubebuilder:validation:Enum=Creating;Running;Scaling;Upgrading;Restoring;Hibernated;Degraded;Failed
type DatabaseClusterPhase string

// DatabaseClusterStatus is the observed state of a DatabaseCluster.
type DatabaseClusterStatus struct {
	CommonStatus `json:",inline"`

	// Phase in one word: Creating, Running, Scaling (servers are added or
	// removed), Upgrading (servers are rolled to a change), Restoring,
	// Hibernated, Degraded (what was healthy is not any more) or Failed.
	// +optional
	Phase DatabaseClusterPhase `json:"phase,omitempty"`

	// Endpoint is host:port of the primary, for reads and writes.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// ReadOnlyEndpoint is host:port of the replicas. Absent with a size of 1.
	// +optional
	ReadOnlyEndpoint string `json:"readOnlyEndpoint,omitempty"`

	// ConnectionSecret names the Secret with username, password, host, port,
	// dbname, uri, verified-uri, jdbc-uri, ca.crt, with engine postgresql multi-host-uri,
	// and with a size above 1 ro-host.
	// +optional
	ConnectionSecret string `json:"connectionSecret,omitempty"`

	// Primary is the name of the pod that takes writes.
	// +optional
	Primary string `json:"primary,omitempty"`

	// Timeline of the last primary: it grows by one with each failover. With engine
	// mysql it is the number of groups that the servers have founded, and of starts of a single server.
	// +optional
	Timeline int64 `json:"timeline,omitempty"`

	// Version of the engine that runs or is rolled to.
	// +optional
	Version string `json:"version,omitempty"`

	// ReadyReplicas is the number of database servers that are ready, the
	// primary included.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

// DatabaseCluster is a replicated database with automatic failover, Services
// for its primary and its replicas, and a Secret to connect with.
//
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dbc,categories={storeplane}
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Up",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.primary`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name may have at most 40 characters, so that the names made from it fit"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and hold only lower-case letters, digits and hyphens, since Services are named after it"
type DatabaseCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the application team asks for.
	Spec DatabaseClusterSpec `json:"spec"`

	// Status is what Storeplane observed.
	// +optional
	Status DatabaseClusterStatus `json:"status,omitempty"`
}
