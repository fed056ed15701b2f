// Package engine has the interface between the program backup and a database server, and what all
// engines share: how to connect, and how to run a tool.
//
// A password is only in a file that no other user can read, and in memory: not in arguments, the
// environment or errors.
package engine

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/text"
)

// A Server is a database server.
type Server interface { //nolint:interfacebloat // it is all that backups ask of a database
	// Version returns the version that the server reports.
	Version(ctx context.Context) (string, error)

	// System returns what tells the server's data from those of every other server, for good, or ""
	// if the engine has no such identifier or the user may not read it.
	System(ctx context.Context) (string, error)

	// Databases returns the names of all databases but the server's own.
	Databases(ctx context.Context) ([]string, error)

	// Roles returns the roles whose names a dump may contain.
	Roles(ctx context.Context) ([]string, error)

	// Dump dumps a database, and returns the number of rows of each table in the dump.
	Dump(ctx context.Context, database string, w io.Writer) (map[string]int64, error)

	// Holds returns one thing that a database holds, or "" if it is empty. It fails with
	// ErrNoDatabase if there is no such database, for engines that tell that apart.
	Holds(ctx context.Context, database string) (string, error)

	// Clear drops all that a database holds but its lock, and creates the database if needed. An error
	// is ErrUnchanged if the database is as it was.
	Clear(ctx context.Context, database string) error

	// Locked returns the lock of a database, or nil if there is none.
	Locked(ctx context.Context, database string) (*Lock, error)

	// Swap replaces the lock of a database by another one, if the lock is still from, and reports
	// whether it was. Nil is no lock. A database that does not exist is created to be locked.
	Swap(ctx context.Context, database string, from, to *Lock) (bool, error)

	// Restore restores a dump of the database from into an empty one, which is created if it does
	// not exist. An error is ErrUnchanged if the database is as it was.
	Restore(ctx context.Context, from, database string, r io.Reader) error

	// Count counts the rows of each table.
	Count(ctx context.Context, database string) (map[string]int64, error)

	// Query fails unless the query returns a row, and none whose first column is false, 0 or
	// null.
	Query(ctx context.Context, database, query string) error

	// Close closes all connections, and removes temporary files.
	Close()
}

// ErrNoDatabase means that there is no database of the name.
var ErrNoDatabase = errors.New("there is no such database")

// ErrUnchanged means that a restore, or dropping what a database holds, failed and changed nothing.
var ErrUnchanged = errors.New("the database is unchanged")

// Unchanged marks an error as ErrUnchanged, without a change of its message.
func Unchanged(err error) error {
	if err == nil {
		return nil
	}
	return unchanged{err}
}

type unchanged struct{ error }

func (u unchanged) Unwrap() error        { return u.error }
func (u unchanged) Is(target error) bool { return target == ErrUnchanged }

// A ThrowAway is a server that runs only to verify a backup. It is removed with the container
// that runs it.
type ThrowAway interface {
	Server

	// Failed explains an error with the server's own output if it has ended or its disk is full.
	Failed(err error) error
}

// Compare compares the rows that were restored into a database with those that were backed up,
// and returns how many there are.
func Compare(database string, want, got map[string]int64) (int64, error) {
	var rows int64
	for _, table := range slices.Sorted(maps.Keys(want)) {
		n, ok := got[table]
		switch {
		case !ok:
			return 0, backup.Errorf(backup.ContentDiffers, "table %s of database %s is not there after the restore", table, database)
		case n != want[table]:
			return 0, backup.Errorf(backup.ContentDiffers, "table %s of database %s has %s after the restore, and had %d when it was backed up", table, database, text.Count(n, "row"), want[table])
		}
		rows += n
	}
	return rows, nil
}

// Truthy reports whether the first column of a row, as text, is neither null, false nor 0.
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
