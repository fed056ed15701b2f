package backup

import (
	"time"
)

// MaxReport is how many bytes of a Report reach the provider: a pod's
// termination message is cut at that.
const MaxReport = 4096

// Reason of a Failure in one word.
type Reason string

// The reasons. Permanent ones do not go away by trying again.
const (
	// InvalidTask: the Task makes no sense to the program. Permanent.
	InvalidTask Reason = "InvalidTask"
	// StoreUnreachable: no connection to the store, or it broke.
	StoreUnreachable Reason = "StoreUnreachable"
	// StoreDenied: the store does not accept the credentials. Permanent.
	StoreDenied Reason = "StoreDenied"
	// BucketMissing: there is no such bucket, container or volume. Permanent.
	BucketMissing Reason = "BucketMissing"
	// StoreFull: there is no room in the store.
	StoreFull Reason = "StoreFull"
	// SourceUnreachable: no connection to the database, or it broke.
	SourceUnreachable Reason = "SourceUnreachable"
	// SourceDenied: the database does not accept the credentials. Permanent.
	SourceDenied Reason = "SourceDenied"
	// ToolFailed: a dump or restore ended with an error.
	ToolFailed Reason = "ToolFailed"
	// BackupMissing: there is no such backup, or its manifest is gone.
	BackupMissing Reason = "BackupMissing"
	// ArchiveGap: WAL is missing between what the backup holds and the newest of
	// the archive.
	ArchiveGap Reason = "ArchiveGap"
	// BackupCorrupt: an object is missing, cut off or not what was written.
	BackupCorrupt Reason = "BackupCorrupt"
	// ContentDiffers: a restored database does not hold what was backed up, or
	// the query says no.
	ContentDiffers Reason = "ContentDiffers"
	// TargetNotEmpty: the database to restore into holds something. Permanent.
	TargetNotEmpty Reason = "TargetNotEmpty"
	// TargetLocked: another restore writes into the database. Permanent.
	TargetLocked Reason = "TargetLocked"
	// KeyMissing: the backup is encrypted, and the key is not its key. Permanent.
	KeyMissing Reason = "KeyMissing"
	// BackupNotAuthentic: the backup was not written with the Backup's key.
	// Permanent.
	BackupNotAuthentic Reason = "BackupNotAuthentic"
	// NoSpace: the pod's own storage is full.
	NoSpace Reason = "NoSpace"
	// Interrupted: the pod was told to stop.
	Interrupted Reason = "Interrupted"
)

// Permanent tells whether trying again is of no use until somebody changed
// something.
func (r Reason) Permanent() bool {
	switch r {
	case InvalidTask, StoreDenied, BucketMissing, SourceDenied, TargetNotEmpty, TargetLocked, KeyMissing, BackupNotAuthentic:
		return true
	default:
		return false
	}
}

// Report of a pod.
type Report struct {
	Action   Action    `json:"action"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	// Failure, or nil if the action succeeded.
	Failure *Failure `json:"failure,omitempty"`

	// Backup that was made, verified or restored.
	Backup *Entry `json:"backup,omitempty"`

	// Catalog of the store as it was at the end, or nil if it could not be read.
	Catalog *Catalog `json:"catalog,omitempty"`

	// Expired is how many backups were deleted because of their age.
	Expired int `json:"expired,omitempty"`

	// Rows in all tables or collections, and Databases, that were restored.
	Rows      int64    `json:"rows,omitempty"`
	Databases []string `json:"databases,omitempty"`
}

// Failure of an action.
type Failure struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
}

// Catalog of what is in the store.
type Catalog struct {
	// Count of good backups, and the sum of their sizes in bytes.
	Count int   `json:"count"`
	Total int64 `json:"total"`

	// Backups, newest first, at most ten.
	Backups []Entry `json:"backups,omitempty"`

	// Oldest backup begins what can be restored to.
	Oldest *time.Time `json:"oldest,omitempty"`

	// Latest is the last time that can be restored to.
	Latest *time.Time `json:"latest,omitempty"`

	// NotAuthentic are those that were not written with the key, newest first, at
	// most ten. They are neither counted nor restored.
	NotAuthentic []string `json:"notAuthentic,omitempty"`

	// Unsealed is how many plain backups are from before encryption was turned on.
	// They are neither counted nor restored while it is on.
	Unsealed int `json:"unsealed,omitempty"`

	// Verified is the newest backup that was verified.
	Verified *Entry `json:"verified,omitempty"`

	// System identifier of the database whose backups these are, for method
	// physical, and Others whose backups lie in the same place.
	System string   `json:"system,omitempty"`
	Others []System `json:"others,omitempty"`
}

// System is a database that had the same name, by its system identifier.
type System struct {
	ID    string `json:"id"`
	Count int    `json:"count"`

	// First and Last time at which a backup of it was complete.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Entry is one backup of a Catalog.
type Entry struct {
	ID string `json:"id"`

	// Time at which it began: it holds what was there then.
	Time time.Time `json:"time"`

	// Seconds that it took.
	Seconds float64 `json:"seconds,omitempty"`

	// Size in the store in bytes.
	Size int64 `json:"size"`

	// Verified is when it was last restored and found good.
	Verified *time.Time `json:"verified,omitempty"`
}
