package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// Shared are the folders that the container of the throw-away server shares with the one that
// reads the store.
type Shared struct {
	// Scratch has the server's data. The container that reads the store writes there until the
	// server starts.
	Scratch string

	// Socket is for the server to write to, and Archive for the other container.
	Socket, Archive string
}

func (s Shared) data() string          { return filepath.Join(s.Scratch, "pgdata") }
func (s Shared) server() string        { return filepath.Join(s.Socket, "server") }
func (s Shared) archiveSocket() string { return filepath.Join(s.Archive, "archive.sock") }

// Serve runs the database that the container beside restores, until ctx ends. Code in the backup
// runs in it as PostgreSQL's superuser: functions of event triggers, indexes and constraints.
func Serve(ctx context.Context, s Shared, stage *engine.Stage, log io.Writer) error {
	r := recovery.Recovery{DataDir: s.data(), WorkDir: s.server(), Log: io.MultiWriter(stage, log)}
	err := r.Serve(ctx, s.archiveSocket(), stage.Ready)
	switch {
	case err == nil, ctx.Err() != nil:
		return nil //nolint:nilerr // it was stopped
	case engine.ScratchReason(err.Error(), "") != "":
		return fail(backup.NoSpace, err)
	case engine.Contains(err.Error(), "out of memory", "Cannot allocate memory"):
		return fail(backup.ToolFailed, err)
	// Only data that was read and is wrong proves that a backup is corrupt.
	case errors.Is(err, recovery.ErrRefused), errors.Is(err, recovery.ErrHole):
		return fail(backup.BackupCorrupt, fmt.Errorf("cannot start the restored database: %w", err))
	}
	return fail(reasonOf(err), err)
}
