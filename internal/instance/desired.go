package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// DesiredKey is the key of Desired, as JSON, in the ConfigMap that has the StatefulSet's name.
const DesiredKey = "instance.json"

// Desired is the state to which the instance managers bring the servers.
type Desired struct {
	// Protocol is the version of the protocol that this Desired is written in. Functions of an
	// older release leave it at 0.
	Protocol int `json:"protocol,omitempty"`

	// Claim is the name of the DatabaseCluster.
	Claim string `json:"claim"`

	// Size is the number of servers. Servers with this ordinal or a higher one are about to be
	// removed, so none of them may be primary.
	Size int32 `json:"size"`

	// Hibernated is true if all servers are about to be stopped.
	Hibernated bool `json:"hibernated,omitempty"`

	// Synchronous is true if a write waits for a standby.
	Synchronous bool `json:"synchronous,omitempty"`

	// Storage is the size of each volume, a Kubernetes quantity. Volumes grow and never
	// shrink.
	Storage string `json:"storage"`

	// Databases are in order. The first one is app.
	Databases []Database `json:"databases"`

	// Users are the users that may log in, in order. The first one is app. Their passwords are
	// in the Secret credentials under PasswordKey. A role that a manager created and that is
	// no longer listed here cannot log in.
	Users []string `json:"users"`

	// Restored is true if the cluster is restored from a backup. Restoring is true until it
	// has had a primary.
	Restored  bool `json:"restored,omitempty"`
	Restoring bool `json:"restoring,omitempty"`

	// LeadWith is the value of LeadWithAnnotation on the DatabaseCluster.
	LeadWith string `json:"leadWith,omitempty"`

	// Backup is set if WAL is archived, with the configuration in RepositoryDir of package
	// backup.
	Backup *Backup `json:"backup,omitempty"`

	// Repository is the volume of the backups, if one is created for them. The primary's
	// manager expands it.
	Repository *Volume `json:"repository,omitempty"`

	// Parameters are the parameters that the claim sets, for the managers to check. Patroni
	// gets them through its own configuration.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Backup is the destination of a cluster's backups and WAL.
type Backup struct {
	Destination backupv1.Destination `json:"destination"`
	Encrypted   bool                 `json:"encrypted,omitempty"`
}

// Volume is a volume claim and its desired size.
type Volume struct {
	Claim   string `json:"claim"`
	Storage string `json:"storage"`
}

// Restore is the backup from which a new cluster is restored.
type Restore struct {
	// Destination is where the backups are, and Namespace and Name are those of the
	// DatabaseCluster whose backups they are.
	Destination backupv1.Destination `json:"destination"`
	Namespace   string               `json:"namespace"`
	Name        string               `json:"name"`
	Encrypted   bool                 `json:"encrypted,omitempty"`

	// System is the system identifier of the database to restore, or "" if there is only one.
	System string `json:"systemIdentifier,omitempty"`

	// ID is the backup to restore, or "" for the newest, with engine mysql.
	ID string `json:"id,omitempty"`

	// Host is the host that serves a volume, or "".
	Host string `json:"host,omitempty"`

	// Time is the time to restore to, or nil for the latest.
	Time *time.Time `json:"time,omitempty"`

	// Before is the transaction before which the restore ends, by its GTID, or "", with engine mysql.
	Before string `json:"before,omitempty"`
}

// Paths of what the servers need for archiving and for a restore, besides those in package
// backup.
const (
	// BackupFile is a Backup as JSON, in backup.RepositoryDir.
	BackupFile = "backup.json"

	// RestoreDir is the directory with the Restore as JSON, the credentials of the store to
	// restore from, and its encryption key.
	RestoreDir  = "/etc/storeplane/restore"
	RestoreFile = "restore.json"
	RestoreKey  = "encryption-key"

	// RestoreStateFile is where a restore reports its progress, a RestoreState as JSON. It is
	// on the volume, beside the data.
	RestoreStateFile = "restore-state.json"

	// TimelineFile holds a TimelineState as JSON. It is on the volume as long as a server has
	// to make sure, before it starts, that the archive does not contain the timeline that it
	// will lead on.
	TimelineFile = "timeline-state.json"

	// BegunFile holds the number of a timeline that was begun for this server to lead on,
	// until the server leads, or follows another one.
	BegunFile = "timeline-begun"

	// CandidateFile exists while Patroni is asked to make this server the leader. It contains
	// the volume claim that the DatabaseCluster's annotation named, or nothing if the server
	// was chosen by its data.
	CandidateFile = "candidate"

	// RewindStateFile is where a pg_rewind that failed is reported, a RewindState as JSON. It
	// is on the volume until an event was created from it.
	RewindStateFile = "rewind-state.json"

	// ArchiveFailureFile holds the message of the last failure of archiving. It is in the
	// directory of PostgreSQL's socket and does not exist while archiving works.
	ArchiveFailureFile = ".archive-failure"

	// HurriedFile marks by its modification time that the pod is about to be killed. It is in
	// the directory of PostgreSQL's socket.
	HurriedFile = ".hurried"
)

// ArchiveSlot is the replication slot by which each server keeps the WAL that is not archived
// yet. The manager beside the primary advances the primary's, and Patroni those of the
// standbys.
const ArchiveSlot = "storeplane_archive"

// RestoreState is the progress of the restore of a server from a backup.
type RestoreState struct {
	// Message describes what is being done, or what went wrong.
	Message string `json:"message"`

	// Failed is true if the restore failed. It is retried.
	Failed bool `json:"failed,omitempty"`
}

// RewindState describes a pg_rewind that failed.
type RewindState struct {
	// Message describes what was done with the data.
	Message string `json:"message"`
}

// TimelineState describes a server that has to begin a timeline of its own.
type TimelineState struct {
	// Message is why the last attempt failed, or "".
	Message string `json:"message,omitempty"`

	// Withdrawn is true if the server is not to lead after all: its pod is about to be
	// replaced.
	Withdrawn bool `json:"withdrawn,omitempty"`

	// After is the last timeline that the cluster is known to have had, or 0. Alone is true if
	// the archive is not searched for later ones.
	After int64 `json:"after,omitempty"`
	Alone bool  `json:"alone,omitempty"`
}

// Database is a database to create. One that is no longer desired is not dropped, since it
// holds data.
type Database struct {
	Name       string   `json:"name"`
	Owner      string   `json:"owner"`
	Extensions []string `json:"extensions,omitempty"`
}

// Digest returns a short hash of a Desired, given as it is in the ConfigMap.
func Digest(desired string) string {
	sum := sha256.Sum256([]byte(desired))
	return hex.EncodeToString(sum[:8])
}
