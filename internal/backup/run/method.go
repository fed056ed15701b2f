package run

import (
	"context"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// A method is what differs between the methods of backups. All else is the same: the store, its folders
// and manifests, the encryption, and what expires.
type method interface {
	// check checks that a backup could be made of the database to which the job is connected.
	check(ctx context.Context, j *job) error

	// fill makes a backup of that database, and adds what it has to its manifest.
	fill(ctx context.Context, j *job, m *backup.Manifest) error

	// tryOut restores a backup into a throw-away database, and returns how many rows it has.
	tryOut(ctx context.Context, j *job, m *backup.Manifest) (int64, error)

	// restore restores the backup that the Task chooses into its database.
	restore(ctx context.Context, j *job) error

	// expire removes what is of no use any more beside the backups that are left, and delete all that is beside them.
	expire(ctx context.Context, j *job, left *store.Listing) error
	delete(ctx context.Context, j *job) error

	// chosenBy returns how a user chooses one of the backups of several databases.
	chosenBy() string
}

// methodOf returns the method of a Task that is not about pgBackRest.
func methodOf(t backup.Task) method {
	if t.Method == backupv1.Physical {
		return copies{}
	}
	return dumps{}
}

// dumps is method logical: each database is dumped.
type dumps struct{}

func (dumps) chosenBy() string { return "Name the backup in source.id, or a time in source.time" }

// databasesIn returns how many databases a backup has.
func databasesIn(m *backup.Manifest) int {
	if m.MethodOf() == backupv1.Physical {
		return len(m.Databases)
	}
	return len(m.Dumps)
}
