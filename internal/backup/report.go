package backup

import (
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// MaxReport is how many bytes of a Report reach the provider: a pod's
// termination message is cut at that.
const MaxReport = 4096

// Reason of a Failure in one word.
type Reason string

// The reasons, which the API describes. Permanent ones do not pass by a retry.
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
