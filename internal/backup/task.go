package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// TaskVariable names the environment variable that holds the Task as JSON.
const TaskVariable = "BACKUP_TASK"

// Program is the path of the program backup in its images, and in those of servers that verify backups.
const Program = "/usr/local/bin/backup"

// Paths at which a pod finds what is not in its Task. Each Secret is a folder with one file for
// each key.
const (
	// SourceDir has the connection to the database: uri, or username, password, host, port and
	// dbname; and ca.crt if there is one.
	SourceDir = "/etc/storeplane/source"

	// StoreDir has the credentials of the store, by the keys that backupv1.Destination describes.
	StoreDir = "/etc/storeplane/store"

	// KeyDir has the encryption key, in the file KeyFile.
	KeyDir      = "/etc/storeplane/encryption"
	KeyFileName = "key"
	KeyFile     = KeyDir + "/" + KeyFileName

	// RepositoryDir has the certificate with which a backup of method physical connects to the
	// servers of a DatabaseCluster: ca.crt, tls.crt and tls.key.
	RepositoryDir = "/etc/storeplane/repository"

	// VolumeDir is where a destination of type volume is mounted.
	VolumeDir = "/var/lib/storeplane/volume"

	// ScratchDir is where the data of a throw-away database is stored.
	ScratchDir = "/var/lib/storeplane/scratch"

	// SocketDir has the socket of a throw-away database, which runs in a container of its own.
	SocketDir = "/run/storeplane/throw-away"

	// ArchiveDir has the socket at which the container that reads the store answers requests for
	// WAL of the container with the throw-away database, for method physical.
	ArchiveDir = "/run/storeplane/archive"

	// TerminationLog is where the Report is written.
	TerminationLog = "/dev/termination-log"
)

// Container is the name of the container that runs the program, and the names of volumes are those
// of StoreDir, VolumeDir and KeyDir.
const (
	Container         = "backup"
	StoreVolume       = "store"
	DestinationVolume = "volume"
	KeyVolume         = "encryption"
)

// Exit codes of the program. After ExitPermanent a Job fails without a retry, which would be of no
// use.
const (
	ExitSuccess   = 0
	ExitFailure   = 1
	ExitPermanent = 42
)

// DefaultPorts are the ports of servers whose connection names none.
var DefaultPorts = map[backupv1.Engine]int32{backupv1.PostgreSQL: 5432, backupv1.MySQL: 3306, backupv1.MongoDB: 27017}

// An Action is what a Job does.
type Action string

// The actions.
const (
	// Check connects to the store and the source, and lists what is in the store.
	Check Action = "check"

	// Backup creates a backup, then expires old ones and removes the remains of failed ones.
	Backup Action = "backup"

	// Verify restores the backup that the Task chooses, or else the newest, into a throw-away
	// database.
	Verify Action = "verify"

	// Serve runs a throw-away database for the container beside, which verifies, or makes a physical
	// backup of MySQL.
	Serve Action = "serve"

	// Restore writes a backup into a database.
	Restore Action = "restore"

	// Delete deletes all backups.
	Delete Action = "delete"
)

// A Task is what a pod has to do.
type Task struct {
	Action Action `json:"action"`

	// For is the action of the container beside, if Action is Serve and Method is physical of engine
	// mysql: which servers run depends on it.
	For Action `json:"for,omitempty"`

	// Method is the method of the backups.
	Method backupv1.Method `json:"method"`

	// Namespace and Name are those of the Backup, or of the DatabaseCluster for method physical.
	// They are part of the path of its backups.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`

	// Database is what is read, or for Restore written to.
	Database Database `json:"database"`

	// Destination has the defaults of the ProviderConfig filled in. Its secretRef is not used:
	// the credentials are in StoreDir.
	Destination backupv1.Destination `json:"destination"`

	// Retention and Keep are those of the Backup.
	Retention string         `json:"retention,omitempty"`
	Keep      *backupv1.Keep `json:"keep,omitempty"`

	// TimeZone is the zone in which days, weeks and months begin.
	TimeZone string `json:"timeZone,omitempty"`

	// Compression is zstd or none.
	Compression string `json:"compression,omitempty"`

	// Encrypted means that there is a key in KeyFile.
	Encrypted bool `json:"encrypted,omitempty"`

	// Full requests a full physical backup instead of an incremental one.
	Full bool `json:"full,omitempty"`

	// FullEvery is the number of days between two full backups: with Full, a backup is
	// incremental until they have passed since the last full one. With 0, each backup with Full
	// is a full one.
	FullEvery int `json:"fullEvery,omitempty"`

	// Stanza is pgBackRest's stanza of the cluster, and Hosts are its servers, for a physical
	// backup.
	Stanza string   `json:"stanza,omitempty"`
	Hosts  []string `json:"hosts,omitempty"`

	// ID chooses the backup to verify or restore, and Time the newest one up to then. Without
	// either it is the newest one.
	ID   string     `json:"id,omitempty"`
	Time *time.Time `json:"time,omitempty"`

	// Before chooses the newest physical backup of MySQL that does not have a transaction, by its GTID, which is
	// the first one that is not restored.
	Before string `json:"before,omitempty"`

	// System limits the choice to the backups of one system, by its identifier (Manifest.System).
	System string `json:"system,omitempty"`

	// AcceptUnsealed restores the backup that ID chooses although it is encrypted and has no seal.
	AcceptUnsealed bool `json:"acceptUnsealed,omitempty"`

	// Query and QueryDatabase check a restored database.
	Query         string `json:"query,omitempty"`
	QueryDatabase string `json:"queryDatabase,omitempty"`

	// Overwrite lets Restore drop what the database holds.
	Overwrite bool `json:"overwrite,omitempty"`

	// Restore is the namespace and name, and UID the UID, of the Restore that requests Action
	// Restore. They identify the owner of the database's lock.
	Restore string `json:"restore,omitempty"`
	UID     string `json:"uid,omitempty"`
}

// Place identifies where the Task's backups are, so that what is reported of another place is not
// taken for it. It does not change with credentials and keys.
func (t *Task) Place() string {
	d := t.Destination
	names := []string{string(t.Method), string(d.Type), d.Endpoint, d.Region, d.Bucket, strings.Trim(d.Prefix, "/"), t.Namespace, t.Name}
	sum := sha256.Sum256([]byte(strings.Join(names, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// A Database is the engine of a Task's server, and the names of the databases that the Task is
// limited to, if any.
type Database struct {
	Engine    backupv1.Engine `json:"engine"`
	Databases []string        `json:"databases,omitempty"`
}
