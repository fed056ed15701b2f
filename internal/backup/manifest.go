package backup

import (
	"path"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// The layout of a store: <prefix>/<namespace>/<name>/<method>/<id>/… holds one backup, a logical one or
// a physical one of MySQL, or a part of MySQL's binary logs. Its Manifest is written last: a folder without one was left by a failed
// backup, or its backup is still running. A Verification beside it records that the backup was restored.
//
// Physical backups of PostgreSQL are a repository of pgBackRest in <prefix>/<namespace>/<name>, in
// which pgBackRest creates the folders archive and backup. A Backup may have the name of a
// DatabaseCluster, so each method has its own folders.
const (
	ManifestObject     = "manifest.json"
	VerificationObject = "verified.json"
)

// ManifestVersion is the version of the Manifest's format.
const ManifestVersion = 1

// Folder returns the path in the bucket of all backups of that name, without a trailing slash.
func Folder(prefix, namespace, name string) string { return path.Join(prefix, namespace, name) }

// Logical returns the folder of the logical backups in a Folder. Older ones are in the Folder
// itself: they are read, and expire, like the others.
func Logical(folder string) string { return path.Join(folder, string(backupv1.Logical)) }

// Physical returns the folder of the physical backups of MySQL in a Folder.
func Physical(folder string) string { return path.Join(folder, string(backupv1.Physical)) }

// BinaryLog is the method of parts of MySQL's binary logs (package segment). Each is stored like a backup.
const BinaryLog backupv1.Method = "binlog"

// BinaryLogs returns the folder of the parts of MySQL's binary logs in a Folder.
func BinaryLogs(folder string) string { return path.Join(folder, string(BinaryLog)) }

// IDFormat is the time format at the beginning of a backup's id, the time at which the backup
// began in UTC: ids sort as times do. A hyphen and random letters and digits follow.
const IDFormat = "20060102T150405Z"

// A Manifest describes a finished backup.
type Manifest struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	Engine  backupv1.Engine `json:"engine"`

	// Method is physical for a copy of a server's files, BinaryLog for a part of its binary logs, and empty
	// for dumps.
	Method backupv1.Method `json:"method,omitempty"`

	// Server is the version that the server reports.
	Server string `json:"server"`

	// System is the system identifier of a PostgreSQL server, or that of a DatabaseCluster of engine
	// mysql, which distinguishes databases that had the same name, and otherwise "".
	System string `json:"system,omitempty"`

	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	// Compression is zstd or none.
	Compression string `json:"compression"`

	// Recipient is the age public key that the objects are encrypted for, or "" if they are
	// plain.
	Recipient string `json:"recipient,omitempty"`

	// Roles are the server's roles, which the dumps may name. They are created in the throw-away
	// database too.
	Roles []string `json:"roles,omitempty"`

	// Position is the set of the transactions that a copy, or a part of binary logs, has, as MySQL writes
	// gtid_executed, without line breaks. Databases are the names of the databases of a copy. Both are empty
	// for dumps.
	Position  string   `json:"position,omitempty"`
	Databases []string `json:"databases,omitempty"`

	// Archived is true for a copy of a server whose binary logs were being archived beside it.
	Archived bool `json:"archived,omitempty"`

	// Before is the set of the transactions that are executed before those of a part of binary logs. It is
	// empty for all others.
	Before string `json:"before,omitempty"`

	// Dumps has one dump for each database, in the order in which they are restored. A copy is a
	// single one of no database: an archive of its files.
	Dumps []Dump `json:"dumps"`

	// Seal authenticates all other fields, if the backup is encrypted.
	Seal string `json:"seal,omitempty"`
}

// MethodOf returns the method by which the backup was made.
func (m *Manifest) MethodOf() backupv1.Method {
	if m.Method == "" {
		return backupv1.Logical
	}
	return m.Method
}

// Size returns the size of all objects in bytes.
func (m *Manifest) Size() int64 {
	var n int64
	for _, d := range m.Dumps {
		for _, o := range d.Objects {
			n += o.Size
		}
	}
	return n
}

// A Dump is the dump of one database: the bytes of the objects one after another, decrypted and
// then decompressed.
type Dump struct {
	Database string   `json:"database"`
	Objects  []Object `json:"objects"`

	// Bytes is the size of the dump itself, before compression and encryption.
	Bytes int64 `json:"bytes"`

	// Tables maps the names of tables, or collections, to their number of rows in the dump.
	Tables map[string]int64 `json:"tables"`
}

// Rows returns how many rows the tables in the dump have.
func (d *Dump) Rows() int64 {
	var n int64
	for _, rows := range d.Tables {
		n += rows
	}
	return n
}

// An Object is one file in the backup's folder.
type Object struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// A Verification records that a backup was restored and found good.
type Verification struct {
	Time time.Time `json:"time"`
	Rows int64     `json:"rows"`

	// Seal authenticates all other fields, if the backup is encrypted.
	Seal string `json:"seal,omitempty"`
}
