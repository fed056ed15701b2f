package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// DesiredKey is the key of Desired, as JSON, in the ConfigMap named like the
// StatefulSet.
const DesiredKey = "instance.json"

// Desired is what the managers make of the servers.
type Desired struct {
	// Protocol is the version that this is in. It is 0 from functions of an older release.
	Protocol int `json:"protocol,omitempty"`

	// Claim is the name of the DatabaseCluster.
	Claim string `json:"claim"`

	// Size is the number of servers. Those with an ordinal at or above it are
	// about to go, so none of them may be primary.
	Size int32 `json:"size"`

	// Hibernated servers are all about to go.
	Hibernated bool `json:"hibernated,omitempty"`

	// Synchronous says that a write waits for a standby.
	Synchronous bool `json:"synchronous,omitempty"`

	// Storage of each volume, a Kubernetes quantity. Volumes grow, never
	// shrink.
	Storage string `json:"storage"`

	// Databases in order. The first one is app.
	Databases []Database `json:"databases"`

	// Users who may log in, in order. The first one is app. Their passwords
	// are in the Secret credentials under PasswordKey. A role that a manager
	// made and that is not among them any more cannot log in.
	Users []string `json:"users"`

	// Restored clusters begin with what a backup holds, and Restoring ones have
	// not begun yet.
	Restored  bool `json:"restored,omitempty"`
	Restoring bool `json:"restoring,omitempty"`

	// LeadWith is what LeadWithAnnotation of the DatabaseCluster says.
	LeadWith string `json:"leadWith,omitempty"`

	// Backup says that WAL is archived, by the configuration in RepositoryDir of
	// package backup.
	Backup *Backup `json:"backup,omitempty"`

	// Repository is the volume of the backups, where it is created for them. The
	// primary's manager grows it.
	Repository *Volume `json:"repository,omitempty"`

	// Parameters that the claim sets, for the managers to check. Patroni
	// gets them by another way.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Backup of a cluster.
type Backup struct {
	Destination backupv1.Destination `json:"destination"`
	Encrypted   bool                 `json:"encrypted,omitempty"`
}

// Volume claim, and the size that it is to have.
type Volume struct {
	Claim   string `json:"claim"`
	Storage string `json:"storage"`
}

// Restore is what a new cluster is filled from.
type Restore struct {
	// Destination of the backups, and Namespace and Name of their DatabaseCluster.
	Destination backupv1.Destination `json:"destination"`
	Namespace   string               `json:"namespace"`
	Name        string               `json:"name"`
	Encrypted   bool                 `json:"encrypted,omitempty"`

	// System identifier of the database to restore, or "" for the only one.
	System string `json:"systemIdentifier,omitempty"`

	// Host that serves a volume, or "".
	Host string `json:"host,omitempty"`

	// Time to restore to, or nil for the latest.
	Time *time.Time `json:"time,omitempty"`
}

// Where the servers find what archiving and a restore need, beside what package
// backup names.
const (
	// BackupFile is a Backup as JSON, in backup.RepositoryDir.
	BackupFile = "backup.json"

	// RestoreDir has the Restore as JSON, the credentials of the store to
	// restore from, and the key of its encryption.
	RestoreDir  = "/etc/storeplane/restore"
	RestoreFile = "restore.json"
	RestoreKey  = "encryption-key"

	// RestoreStateFile is where a restore says how it goes: a RestoreState as
	// JSON. It is on the volume, beside the data.
	RestoreStateFile = "restore-state.json"

	// TimelineFile is there while a server has to make sure before it starts that the
	// archive does not know the timeline it will lead on, and says why it cannot: a
	// TimelineState as JSON, on the volume.
	TimelineFile = "timeline-state.json"

	// BegunFile has the number of a timeline that was begun for this server to lead on,
	// until it leads, or follows another one.
	BegunFile = "timeline-begun"

	// CandidateFile is there while Patroni is to have this server lead, since the
	// DatabaseCluster's annotation names its volume.
	CandidateFile = "candidate"

	// RewindStateFile is where a pg_rewind that failed is reported, on the volume,
	// until an event tells of it: a RewindState as JSON.
	RewindStateFile = "rewind-state.json"

	// ArchiveFailureFile is where the last failure of archiving stands in words,
	// in the folder of PostgreSQL's socket. It is gone once there is none.
	ArchiveFailureFile = ".archive-failure"

	// HurriedFile says, by when it was written, that the pod is killed in a moment.
	// It is in the same folder.
	HurriedFile = ".hurried"
)

// ArchiveSlot is the replication slot by which each server keeps the WAL that is
// not in the archive yet. The manager beside the primary advances it, and Patroni
// that of the standbys.
const ArchiveSlot = "storeplane_archive"

// RestoreState of a server that is being filled.
type RestoreState struct {
	// Message in words of what goes on, or of what went wrong.
	Message string `json:"message"`

	// Failed says that it went wrong. It is tried again.
	Failed bool `json:"failed,omitempty"`
}

// RewindState of a server whose data could not be rewound.
type RewindState struct {
	// Message says what was done with the data.
	Message string `json:"message"`
}

// TimelineState of a server that is to begin a timeline of its own.
type TimelineState struct {
	// Message says why it has not begun yet, once it was tried.
	Message string `json:"message,omitempty"`

	// Withdrawn says that the server is not to lead after all: its pod is about to be
	// replaced.
	Withdrawn bool `json:"withdrawn,omitempty"`

	// After is the last timeline that the cluster is known to have had, or 0. Alone says
	// that the archive is not asked for later ones.
	After int64 `json:"after,omitempty"`
	Alone bool  `json:"alone,omitempty"`
}

// Database to exist. One that is no longer desired stays: it holds data.
type Database struct {
	Name       string   `json:"name"`
	Owner      string   `json:"owner"`
	Extensions []string `json:"extensions,omitempty"`
}

// PasswordKey is the key of a user's password in the Secret credentials.
func PasswordKey(user string) string { return "user-" + user }

// Digest tells one Desired, as it stands in the ConfigMap, from another.
func Digest(desired string) string {
	sum := sha256.Sum256([]byte(desired))
	return hex.EncodeToString(sum[:8])
}

// Program is the instance manager in the image.
const Program = "/usr/local/bin/instance"

// ScopeVariable names the environment variable that holds the name of the
// StatefulSet, which is also Patroni's scope.
const ScopeVariable = "CLUSTER_SCOPE"

// Ordinal of a StatefulSet's pod, or one beyond all others.
func Ordinal(pod string) int32 {
	n, err := strconv.ParseInt(pod[strings.LastIndex(pod, "-")+1:], 10, 32)
	if err != nil {
		return math.MaxInt32
	}
	return int32(n)
}

// Pod of a StatefulSet by its ordinal.
func Pod(set string, ordinal int32) string { return fmt.Sprintf("%s-%d", set, ordinal) }
