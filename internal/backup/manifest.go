package backup

import (
	"path"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// What lies in a store: <prefix>/<namespace>/<name>/logical/<id>/… with a Manifest,
// which is written last: a folder without one is what a failed backup left, or one
// that is being made. A Verification beside it says that the backup was restored.
//
// Physical backups are a repository of pgBackRest in <prefix>/<namespace>/<name>,
// which has the folders archive and backup there. A Backup may have the name of a
// DatabaseCluster, so each method has folders of its own.
const (
	ManifestObject     = "manifest.json"
	VerificationObject = "verified.json"
)

// ManifestVersion is the version of Manifest's shape.
const ManifestVersion = 1

// Folder of all backups of that name, in the bucket, without a slash at its end.
func Folder(prefix, namespace, name string) string { return path.Join(prefix, namespace, name) }

// Logical is the folder of the logical backups in a Folder. They lay in the Folder
// itself at first, and those that still do are read, and expire, as the others.
func Logical(folder string) string { return path.Join(folder, "logical") }

// IDFormat makes the id of a backup of the time at which it began, in UTC: ids
// sort as times do. A few random letters follow, after a hyphen.
const IDFormat = "20060102T150405Z"

// Manifest of a backup.
type Manifest struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	Engine  backupv1.Engine `json:"engine"`

	// Server is the version that the server says it has.
	Server string `json:"server"`

	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`

	// Compression is zstd or none.
	Compression string `json:"compression"`

	// Recipient is the age public key that the objects are encrypted for.
	Recipient string `json:"recipient,omitempty"`

	// Roles of the server, which the dumps may name. A throw-away database has
	// them too.
	Roles []string `json:"roles,omitempty"`

	// Dumps, one a database, in the order in which they are restored.
	Dumps []Dump `json:"dumps"`

	// Seal of all else, of an encrypted backup.
	Seal string `json:"seal,omitempty"`
}

// Size of all objects in bytes.
func (m *Manifest) Size() int64 {
	var n int64
	for _, d := range m.Dumps {
		for _, o := range d.Objects {
			n += o.Size
		}
	}
	return n
}

// Dump of one database: the objects' bytes one after another, decrypted, then
// decompressed.
type Dump struct {
	Database string   `json:"database"`
	Objects  []Object `json:"objects"`

	// Bytes of the dump itself.
	Bytes int64 `json:"bytes"`

	// Tables (or collections) by name with their number of rows in the very
	// snapshot that was dumped.
	Tables map[string]int64 `json:"tables"`
}

// Object in the backup's folder.
type Object struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Verification of a backup.
type Verification struct {
	Time time.Time `json:"time"`
	Rows int64     `json:"rows"`

	// Seal of all else, of an encrypted backup.
	Seal string `json:"seal,omitempty"`
}
