package backup

import (
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// MaxReport is the number of bytes of a Report that reach the provider: the kubelet cuts off a
// pod's termination message after that many.
const MaxReport = 4096

// A Reason is the cause of a Failure in one word.
type Reason string

// The reasons, which the API describes. A retry does not help with permanent ones.
const (
	InvalidTask        Reason = backupv1.ReasonInvalidTask
	StoreUnreachable   Reason = backupv1.ReasonStoreUnreachable
	StoreDenied        Reason = backupv1.ReasonStoreDenied
	BucketMissing      Reason = backupv1.ReasonBucketMissing
	StoreFull          Reason = backupv1.ReasonStoreFull
	SourceUnreachable  Reason = backupv1.ReasonSourceUnreachable
	SourceDenied       Reason = backupv1.ReasonSourceDenied
	ToolFailed         Reason = backupv1.ReasonToolFailed
	BackupMissing      Reason = backupv1.ReasonBackupMissing
	ArchiveGap         Reason = backupv1.ReasonArchiveGap
	BackupCorrupt      Reason = backupv1.ReasonBackupCorrupt
	ContentDiffers     Reason = backupv1.ReasonContentDiffers
	TargetNotEmpty     Reason = backupv1.ReasonTargetNotEmpty
	TargetLocked       Reason = backupv1.ReasonTargetLocked
	KeyMissing         Reason = backupv1.ReasonKeyMissing
	BackupNotAuthentic Reason = backupv1.ReasonBackupNotAuthentic
	NoSpace            Reason = backupv1.ReasonNoSpace
	Interrupted        Reason = backupv1.ReasonInterrupted
)

// Permanent reports whether a retry is of no use until a user has changed something.
func (r Reason) Permanent() bool {
	switch r {
	case InvalidTask, StoreDenied, BucketMissing, SourceDenied, TargetNotEmpty, TargetLocked, KeyMissing, BackupNotAuthentic:
		return true
	default:
		return false
	}
}

// A Report is the result of a pod.
type Report struct {
	Action   Action    `json:"action"`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	// Failure is nil if the action succeeded.
	Failure *Failure `json:"failure,omitempty"`

	// Place is the Task's Place, to which Backup and Catalog refer. It is empty in reports of older
	// releases.
	Place string `json:"place,omitempty"`

	// Backup is the backup that was created, verified or restored.
	Backup *Entry `json:"backup,omitempty"`

	// Catalog lists the store as it was at the end. It is nil if the store could not be read.
	Catalog *Catalog `json:"catalog,omitempty"`

	// Expired is how many backups expired and were deleted.
	Expired int `json:"expired,omitempty"`

	// Rows is the number of rows restored in all tables or collections of Databases.
	Rows      int64    `json:"rows,omitempty"`
	Databases []string `json:"databases,omitempty"`
}

// A Failure is why an action failed.
type Failure struct {
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
}

// A Catalog summarizes the backups in the store.
type Catalog struct {
	// Count is the number of good backups, and Total the sum of their sizes in bytes.
	Count int   `json:"count"`
	Total int64 `json:"total"`

	// Backups are the newest ones, newest first, at most ten.
	Backups []Entry `json:"backups,omitempty"`

	// Oldest is the earliest time that can be restored, or nil.
	Oldest *time.Time `json:"oldest,omitempty"`

	// Latest is the last time that can be restored. It is nil for method physical.
	Latest *time.Time `json:"latest,omitempty"`

	// NotAuthentic are the ids of backups that were not written with the key, newest first, at
	// most ten. They are neither counted nor restored.
	NotAuthentic []string `json:"notAuthentic,omitempty"`

	// Unsealed is the number of plain backups from before encryption was turned on. They are
	// neither counted nor restored while it is on.
	Unsealed int `json:"unsealed,omitempty"`

	// Verified is the newest of the backups that were verified, or nil.
	Verified *Entry `json:"verified,omitempty"`

	// System is the system identifier of the database that the backups are of, or "", and
	// Others are the databases whose backups are in the same place.
	System string   `json:"system,omitempty"`
	Others []System `json:"others,omitempty"`
}

// A System is another database that had the same name, by its system identifier.
type System struct {
	ID    string `json:"id"`
	Count int    `json:"count"`

	// First and Last are the times at which its first and its last backup were complete.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// An Entry is one backup of a Catalog.
type Entry struct {
	ID string `json:"id"`

	// Time is when the backup began. A logical backup restores to that time.
	Time time.Time `json:"time"`

	// Seconds is how long it took.
	Seconds float64 `json:"seconds,omitempty"`

	// Size is its size in the store in bytes.
	Size int64 `json:"size"`

	// Verified is when it was last restored and found good, or nil.
	Verified *time.Time `json:"verified,omitempty"`
}
