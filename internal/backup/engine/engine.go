// Package engine is what the program backup asks of a database server, and what
// its engines share: how to connect, and how to run a tool beside it.
//
// A password is only ever in a file that nobody else reads, and in memory: not in
// arguments, not in an environment, and not in an error.
package engine

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
)

// A Server with databases.
type Server interface {
	// Version that the server says it has.
	Version(ctx context.Context) (string, error)

	// Databases that are not the server's own, by name.
	Databases(ctx context.Context) ([]string, error)

	// Roles whose names a dump may mention.
	Roles(ctx context.Context) ([]string, error)

	// Dump a database, and tell how many rows each of its tables has in the dump.
	Dump(ctx context.Context, database string, w io.Writer) (map[string]int64, error)

	// Holds says what a database holds, or nothing if it is empty. It fails with
	// ErrNoDatabase if there is none, where that is a thing.
	Holds(ctx context.Context, database string) (string, error)

	// Clear makes a database that is there and holds nothing but its lock.
	Clear(ctx context.Context, database string) error

	// Locked returns the lock of a database, or nil if there is none.
	Locked(ctx context.Context, database string) (*Lock, error)

	// Swap the lock of a database for another one, if it is still what it was, and
	// tell whether it was. None is nil. A database that is not there is made to be
	// locked.
	Swap(ctx context.Context, database string, from, to *Lock) (bool, error)

	// Restore a dump of the database from into an empty one, which is made if it is
	// not there.
	Restore(ctx context.Context, from, database string, r io.Reader) error

	// Count the rows of each table.
	Count(ctx context.Context, database string) (map[string]int64, error)

	// Query must return a row, and none that begins with false, 0 or null.
	Query(ctx context.Context, database, query string) error

	// Close ends what is open.
	Close()
}

// ErrNoDatabase says that there is no database of the name.
var ErrNoDatabase = errors.New("there is no such database")

// A ThrowAway server is there to see whether a backup restores. It is removed with the
// container that serves it.
type ThrowAway interface {
	Server

	// Failed explains an error by the server's own words, if it has died or is out
	// of room.
	Failed(err error) error
}

// Compare the rows that were restored into a database with those that were backed
// up, and return how many there are.
func Compare(database string, want, got map[string]int64) (int64, error) {
	var rows int64
	for _, table := range slices.Sorted(maps.Keys(want)) {
		n, ok := got[table]
		switch {
		case !ok:
			return 0, backup.Errorf(backup.ContentDiffers, "table %s of database %s is not there after the restore", table, database)
		case n != want[table]:
			return 0, backup.Errorf(backup.ContentDiffers, "table %s of database %s has %d rows after the restore, and had %d when it was backed up", table, database, n, want[table])
		}
		rows += n
	}
	return rows, nil
}

// Truthy tells whether the first column of a row, as text, says yes.
func Truthy(text []byte) bool {
	if text == nil {
		return false
	}
	switch strings.ToLower(string(text)) {
	case "0", "f", "false", "\x00":
		return false
	}
	return true
}
