package v1

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of a Backup.
const (
	// RunNowAnnotation starts a backup, once for each new value.
	RunNowAnnotation = "backup.example.com/run-now"

	// VerifyNowAnnotation starts a verification, once for each new value.
	VerifyNowAnnotation = "backup.example.com/verify-now"

	// ReleaseAnnotation, set to "true", lets a Backup whose data should be
	// deleted go though its store cannot be reached. The data stays.
	ReleaseAnnotation = "backup.example.com/release"
)

// Labels of the Jobs and pods that work for a Backup or Restore.
const (
	// BackupLabel is the name of the Backup.
	BackupLabel = "backup.example.com/backup"

	// RestoreLabel is the name of the Restore.
	RestoreLabel = "backup.example.com/restore"

	// ActionLabel is what a Job does: check, backup, verify, restore, delete.
	ActionLabel = "backup.example.com/action"
)

// Method of a backup.
//
// +kubebuilder:validation:Enum=logical;physical
type Method string

// The methods.
const (
	// Logical backups are what pg_dump, mariadb-dump or mongodump write.
	Logical Method = "logical"

	// Physical backups are the files of the servers. Those of PostgreSQL are
	// pgBackRest's, with the log of all changes, so any point in time can be
	// restored to. Those of MySQL are copies by its clone plugin.
	Physical Method = "physical"
)

// DeletionPolicy defines what becomes of the backups when the Backup is deleted.
//
// +kubebuilder:validation:Enum=Orphan;Delete
type DeletionPolicy string

// The deletion policies.
const (
	Orphan DeletionPolicy = "Orphan"
	Delete DeletionPolicy = "Delete"
)

// BackupParameters is what a Backup does.
//
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method != 'physical' || has(self.source.connection.databaseClusterRef)",message="method physical needs source.connection.databaseClusterRef"
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method != 'physical' || self.source.type in ['postgresql', 'mysql']",message="method physical needs source.type postgresql or mysql"
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method != 'physical' || self.source.type != 'postgresql' || !has(self.schedule)",message="the schedule of physical backups is the DatabaseCluster's with source.type postgresql: spec.backup.schedule"
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method != 'physical' || !has(self.source.databases)",message="source.databases is for method logical: a physical backup has all databases"
// +kubebuilder:validation:XValidation:rule="(has(self.method) ? self.method : 'logical') == (has(oldSelf.method) ? oldSelf.method : 'logical')",message="method is immutable: make another Backup"
// +kubebuilder:validation:XValidation:rule="self.source.type == oldSelf.source.type",message="source.type is immutable: make another Backup"
type BackupParameters struct {
	// Source of the data.
	Source Database `json:"source"`

	// Destination of the backups.
	Destination Destination `json:"destination"`

	// Method of the backups: logical, for dumps; or physical, for the files of the
	// servers of a DatabaseCluster. Physical backups of type postgresql are those
	// that the DatabaseCluster makes, which creates this Backup itself. Those of
	// type mysql are copies of all databases, made by this Backup's schedule, and
	// restored by restoreFrom of a new DatabaseCluster.
	// +optional
	// +kubebuilder:default=logical
	Method Method `json:"method,omitempty"`

	// Schedule in cron format: minute, hour, day of month, month, day of week;
	// or @hourly, @daily, @weekly, @monthly. Without it backups are made only
	// when asked for, by the annotation backup.example.com/run-now. Physical
	// backups of type postgresql have the DatabaseCluster's schedule instead.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9*/,?LW#A-Za-z-]+( +[0-9*/,?LW#A-Za-z-]+){4})$')",message="schedule must have five fields like '0 2 * * *', or be @hourly, @daily, @weekly or @monthly"
	Schedule string `json:"schedule,omitempty"`

	// TimeZone of the schedules, for example Europe/Vienna.
	// +optional
	// +kubebuilder:default=Etc/UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+/-]*$`
	TimeZone string `json:"timeZone,omitempty"`

	// Suspend holds the schedules: what is missed meanwhile is not made up for.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Retention is the age at which a backup expires: a number of days, weeks
	// or months (of 30 days) like 30d, 4w, 12m. The newest backup, and the newest
	// one that was verified, never expire. Defaults to 30d unless keep is given.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*[dwm]$`
	Retention string `json:"retention,omitempty"`

	// Keep defines which backups stay beyond the age of retention.
	// +optional
	Keep *Keep `json:"keep,omitempty"`

	// Compression of a dump, or of a copy of MySQL's files.
	// +optional
	// +kubebuilder:default=zstd
	// +kubebuilder:validation:Enum=zstd;none
	Compression string `json:"compression,omitempty"`

	// Encryption of the backups before they leave the pod. Without it a key is
	// generated for new Backups with a ClusterProviderConfig's credentials, unless its
	// encryption is None; elsewhere they are as safe as the store.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`

	// Verification restores the newest backup into a throw-away database and
	// checks that all is there.
	// +optional
	// +kubebuilder:default={}
	Verification *Verification `json:"verification,omitempty"`

	// DeletionPolicy defines what becomes of the backups when this Backup is
	// deleted: Orphan keeps them, Delete deletes them.
	// +optional
	// +kubebuilder:default=Orphan
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Resources of the pods that back up and verify. Defaults to requests of
	// 100m and 128Mi for backups, and a limit of 1Gi for the throw-away database.
	// Pods that have one give them to it: those that verify, and with method
	// physical and type mysql also those that back up.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// Keep counts backups that stay beyond the age of retention.
//
// +kubebuilder:validation:MinProperties=1
type Keep struct {
	// Last is the number of newest backups that stay.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Last int32 `json:"last,omitempty"`

	// Daily is for how many days with a backup the newest of each stays.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Daily int32 `json:"daily,omitempty"`

	// Weekly is for how many weeks (from Monday on) with a backup the newest of
	// each stays.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Weekly int32 `json:"weekly,omitempty"`

	// Monthly is for how many months with a backup the newest of each stays.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	Monthly int32 `json:"monthly,omitempty"`
}

// Verification of backups.
type Verification struct {
	// Enabled turns verification on a schedule on or off. The annotation
	// backup.example.com/verify-now asks for one either way.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// Schedule in cron format. The first backup is verified at once.
	// +optional
	// +kubebuilder:default="0 5 * * 0"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[0-9*/,?LW#A-Za-z-]+( +[0-9*/,?LW#A-Za-z-]+){4})$')",message="verification.schedule must have five fields like '0 5 * * 0', or be @hourly, @daily, @weekly or @monthly"
	Schedule string `json:"schedule,omitempty"`

	// Query that must return at least one row, and none whose first column is
	// false, 0 or null. For postgresql and mysql.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query,omitempty"`

	// Database that the query runs in. Defaults to the first one of the backup.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Database string `json:"database,omitempty"`

	// Storage of the throw-away database, a quantity. Without it a logical backup's
	// lies on the node's disk and may have 10Gi there, or
	// resources.limits.ephemeral-storage, and a physical one's on a volume of the
	// size of the DatabaseCluster's. A physical backup of type mysql is copied to
	// such a volume before it is uploaded, too.
	// +optional
	Storage *resource.Quantity `json:"storage,omitempty"`

	// StorageClassName of that volume. Defaults to the cluster's default class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName string `json:"storageClassName,omitempty"`
}

// TypeEscrowed is the type of the condition of a Backup with a generated key, of its own or its
// DatabaseCluster's: whether a copy of it is kept, by which backups can be read whose namespace is
// lost.
const TypeEscrowed = "Escrowed"

// TypeVerified is the condition that reports whether the backups were proven to restore.
const TypeVerified = "Verified"

// BackupPhase is the state of a Backup in one word.
//
// +kubebuilder:validation:Enum=Pending;Scheduled;Running;Verifying;Suspended;Failed;Deleting
type BackupPhase string

// The phases.
const (
	// BackupPending has not reached its store and its source yet.
	BackupPending BackupPhase = "Pending"
	// BackupScheduled waits for its next time.
	BackupScheduled BackupPhase = "Scheduled"
	// BackupRunning makes a backup.
	BackupRunning BackupPhase = "Running"
	// BackupVerifying restores one to see whether it is good.
	BackupVerifying BackupPhase = "Verifying"
	// BackupSuspended makes none.
	BackupSuspended BackupPhase = "Suspended"
	// BackupFailed has failed the last time, or cannot begin.
	BackupFailed BackupPhase = "Failed"
	// BackupDeleting deletes its data.
	BackupDeleting BackupPhase = "Deleting"
)

// RecoveryGap is a time in which nothing can be restored.
type RecoveryGap struct {
	// From is the newest time before it that can be restored to, if that is
	// known.
	// +optional
	From *metav1.Time `json:"from,omitempty"`

	// To is when the first backup after it was complete.
	// +optional
	To *metav1.Time `json:"to,omitempty"`
}

// BackupEntry is one backup in the store.
type BackupEntry struct {
	// ID of the backup, by which a Restore names it.
	ID string `json:"id"`

	// Time at which the backup began. A logical one holds what was there then, a
	// physical one what was there when its copy was complete.
	Time metav1.Time `json:"time"`

	// Size in the store in bytes.
	Size int64 `json:"size"`

	// Verified is when it was restored and found good.
	// +optional
	Verified *metav1.Time `json:"verified,omitempty"`
}

// BackupObservation is what was seen of the backups.
type BackupObservation struct {
	// Phase in one word: Pending, Scheduled, Running, Verifying, Suspended,
	// Failed or Deleting.
	// +optional
	Phase BackupPhase `json:"phase,omitempty"`

	// Schedule that is in force.
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// LastScheduleTime is when the schedule last started a backup.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// NextScheduleTime is when it starts the next one.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// LastSuccessfulTime is when the newest good backup began.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`

	// LastDuration is how long the newest good backup took.
	// +optional
	LastDuration *metav1.Duration `json:"lastDuration,omitempty"`

	// LastFailure of a backup, in the words of the tool that failed. It is
	// cleared by the next success.
	// +optional
	LastFailure *Failure `json:"lastFailure,omitempty"`

	// LastVerifiedTime is when a backup was last restored and found good.
	// +optional
	LastVerifiedTime *metav1.Time `json:"lastVerifiedTime,omitempty"`

	// LastVerified is the id of that backup.
	// +optional
	LastVerified string `json:"lastVerified,omitempty"`

	// Size of the newest good backup in the store, a quantity.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// Count of good backups in the store.
	// +optional
	Count int32 `json:"count,omitempty"`

	// NotAuthentic are ids of backups in the store that were not written with the
	// key, newest first, at most ten. They are neither counted nor restored.
	// +optional
	NotAuthentic []string `json:"notAuthentic,omitempty"`

	// SystemIdentifier of the PostgreSQL cluster whose backups these are, with its
	// suffix if physical ones were restored, or the identifier of the data of a
	// DatabaseCluster of engine mysql: all that is reported here is about them
	// alone. It is empty for others.
	// +optional
	SystemIdentifier string `json:"systemIdentifier,omitempty"`

	// OtherSystems are database clusters that had the same name and whose
	// backups lie in the same place, at most five. Physical ones are restored by
	// restoreFrom.systemIdentifier of a DatabaseCluster, logical ones by source.id or
	// source.time of a Restore. They do not expire.
	// +optional
	// +listType=map
	// +listMapKey=systemIdentifier
	OtherSystems []BackupSystem `json:"otherSystems,omitempty"`

	// FirstRecoverableTime is the earliest time that can be restored to.
	// +optional
	FirstRecoverableTime *metav1.Time `json:"firstRecoverableTime,omitempty"`

	// LastRecoverableTime is the latest time that can be restored to: the last
	// change that was archived, for physical backups of type postgresql and for a
	// DatabaseCluster's own of type mysql, and the newest backup's for all others.
	// +optional
	LastRecoverableTime *metav1.Time `json:"lastRecoverableTime,omitempty"`

	// Gaps are times between the two that cannot be restored to, since WAL or binary
	// logs of them are lost. One without an end ends with the next backup.
	// +optional
	Gaps []RecoveryGap `json:"gaps,omitempty"`

	// CatalogTime is when what is in the store was last listed.
	// +optional
	CatalogTime *metav1.Time `json:"catalogTime,omitempty"`

	// Location in the store: <prefix>/<namespace>/<name>, and below it logical for
	// that method, or physical for that of type mysql.
	// +optional
	Location string `json:"location,omitempty"`

	// Job that runs now.
	// +optional
	Job string `json:"job,omitempty"`

	// Checked is a digest of what the store and the source were last reached
	// with.
	// +optional
	Checked string `json:"checked,omitempty"`

	// RunNow is the last value of the annotation backup.example.com/run-now
	// that a backup was started for.
	// +optional
	RunNow string `json:"runNow,omitempty"`

	// VerifyNow is the last value of the annotation
	// backup.example.com/verify-now that a verification was started for.
	// +optional
	VerifyNow string `json:"verifyNow,omitempty"`

	// Backups in the store, newest first, at most ten.
	// +optional
	Backups []BackupEntry `json:"backups,omitempty"`
}

// BackupSystem is a database cluster with backups in the store.
type BackupSystem struct {
	// SystemIdentifier of the database cluster.
	SystemIdentifier string `json:"systemIdentifier"`

	// Count of its good backups.
	Count int32 `json:"count"`

	// FirstRecoverableTime is when its oldest backup was complete.
	FirstRecoverableTime metav1.Time `json:"firstRecoverableTime"`

	// LastBackupTime is when its newest backup was complete.
	LastBackupTime metav1.Time `json:"lastBackupTime"`
}

// BackupSpec is the desired state of a Backup.
type BackupSpec struct {
	xpv2.ManagedResourceSpec `json:",inline"`

	// ForProvider is what to back up, where to and when.
	ForProvider BackupParameters `json:"forProvider"`
}

// BackupStatus is the observed state of a Backup.
type BackupStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen of the backups.
	// +optional
	AtProvider BackupObservation `json:"atProvider,omitempty"`
}

// Backup copies a database into a store, on a schedule, and proves that what it
// wrote can be restored.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=bak,categories={crossplane,managed,storeplane}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.atProvider.phase`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.status.atProvider.schedule`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.atProvider.lastSuccessfulTime`
// +kubebuilder:printcolumn:name="Verified",type=date,JSONPath=`.status.atProvider.lastVerifiedTime`
// +kubebuilder:printcolumn:name="Count",type=integer,JSONPath=`.status.atProvider.count`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.atProvider.size`
// +kubebuilder:printcolumn:name="Synced",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Synced')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name may have at most 40 characters, so that the names made from it fit"
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is asked for.
	Spec BackupSpec `json:"spec"`

	// Status is what was observed.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status BackupStatus `json:"status,omitempty"`
}

// BackupList is a list of Backups.
//
// +kubebuilder:object:root=true
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Backup `json:"items"`
}
