package backup

import (
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// TaskVariable names the environment variable that holds the Task as JSON.
const TaskVariable = "BACKUP_TASK"

// Where a pod finds what is not in its Task. Each Secret is a folder with a file
// a key.
const (
	// SourceDir has the connection to the database: uri, or username, password,
	// host, port and dbname; and ca.crt, if there is one.
	SourceDir = "/etc/storeplane/source"

	// StoreDir has the store's credentials, by the keys of
	// backupv1.Destination.
	StoreDir = "/etc/storeplane/store"

	// KeyFile is the key of the encryption.
	KeyFile = "/etc/storeplane/encryption/key"

	// RepositoryDir has the certificate by which the servers of a
	// DatabaseCluster are reached, for a backup with method physical: ca.crt,
	// tls.crt and tls.key.
	RepositoryDir = "/etc/storeplane/repository"

	// VolumeDir is where a destination of type volume is mounted.
	VolumeDir = "/var/lib/storeplane/volume"

	// ScratchDir is where a throw-away database lies.
	ScratchDir = "/var/lib/storeplane/scratch"

	// SocketDir is where the socket of a throw-away database is, which runs in a
	// container of its own.
	SocketDir = "/run/storeplane/throw-away"

	// ArchiveDir is where the container that reads the store answers what that of a
	// throw-away database of method physical asks for: WAL.
	ArchiveDir = "/run/storeplane/archive"

	// TerminationLog is where the Report is written.
	TerminationLog = "/dev/termination-log"
)

// Action is what a Job does.
type Action string

// The actions.
const (
	// Check reaches the store and the source, and lists what is in the store.
	Check Action = "check"

	// Backup makes a backup, then expires old ones and removes what failed ones
	// left.
	Backup Action = "backup"

	// Verify restores the newest backup into a throw-away database.
	Verify Action = "verify"

	// Serve a throw-away database to the container beside, which verifies.
	Serve Action = "serve"

	// Restore writes a backup into a database.
	Restore Action = "restore"

	// Delete deletes all backups.
	Delete Action = "delete"
)

// Task of a pod.
type Task struct {
	Action Action `json:"action"`

	// Method of the backups.
	Method backupv1.Method `json:"method"`

	// Namespace and Name of the Backup, or of the DatabaseCluster for method
	// physical: they are in the path of its backups.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	// Database that is read, or written to by Restore.
	Database Database `json:"database"`

	// Destination with the ProviderConfig's defaults filled in. Its secretRef
	// plays no part: StoreDir has the credentials.
	Destination backupv1.Destination `json:"destination"`

	// Retention and Keep as in the Backup.
	Retention string         `json:"retention,omitempty"`
	Keep      *backupv1.Keep `json:"keep,omitempty"`

	// TimeZone in which days, weeks and months begin.
	TimeZone string `json:"timeZone,omitempty"`

	// Compression is zstd or none.
	Compression string `json:"compression,omitempty"`

	// Encrypted says that KeyFile is there.
	Encrypted bool `json:"encrypted,omitempty"`

	// Full asks for a full physical backup, instead of an incremental one.
	Full bool `json:"full,omitempty"`

	// FullEvery so many days a Full backup is one, and incremental in between.
	FullEvery int `json:"fullEvery,omitempty"`

	// Stanza is the system identifier of the cluster, and Hosts are its
	// servers, for a physical backup.
	Stanza string   `json:"stanza,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`

	// ID or Time choose a backup to verify or restore; the newest one else.
	ID   string     `json:"id,omitempty"`
	Time *time.Time `json:"time,omitempty"`

	// Query and QueryDatabase check a restored database.
	Query         string `json:"query,omitempty"`
	QueryDatabase string `json:"queryDatabase,omitempty"`

	// Overwrite lets Restore drop what is there.
	Overwrite bool `json:"overwrite,omitempty"`

	// Restore that asks for Action Restore, by its namespace and name, and its UID:
	// they say whose the lock of the database is.
	Restore string `json:"restore,omitempty"`
	UID     string `json:"uid,omitempty"`
}

// Database of a Task.
type Database struct {
	Engine    backupv1.Engine `json:"engine"`
	Databases []string        `json:"databases,omitempty"`
}
