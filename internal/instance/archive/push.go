package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// slowAfter is how long a segment may take before that is noted. pgBackRest tries for minutes
// before it reports that a store cannot be reached.
const slowAfter = time.Minute

// Push pushes a segment of WAL into the archive, as PostgreSQL's archive command. It notes a
// failure where the instance manager reads it. It returns ErrHurried if the pod is about to be
// killed.
func Push(ctx context.Context, c Config, segment string, log io.Writer) error {
	if c.hurried() {
		return ErrHurried
	}
	slow := time.AfterFunc(slowAfter, func() { c.noteSlow(segment) })
	unhurried, end := c.unhurried(ctx)
	defer end()
	err := push(unhurried, c, segment, log)
	slow.Stop()
	if err != nil && errors.Is(context.Cause(unhurried), ErrHurried) {
		return ErrHurried
	}
	c.noteFailure(err)
	return err
}

// push pushes a segment to the present destination. It returns ErrMoved if that has changed
// meanwhile.
func push(ctx context.Context, c Config, segment string, log io.Writer, options ...string) error {
	spool, err := c.spool()
	if err != nil {
		return err
	}
	if err := pushNoting(ctx, c, spool, segment, log, options...); err != nil {
		return err
	}
	return c.unmoved(spool)
}

// pushNoting pushes a segment. pgBackRest notes in a spool what it has pushed.
func pushNoting(ctx context.Context, c Config, spool, segment string, log io.Writer, options ...string) error {
	stanza, err := c.Stanza()
	if err != nil {
		return err
	}
	tool, err := c.Tool(log)
	if err != nil {
		return err
	}
	tool.Env = append(tool.Env, spoolVariable+"="+spool)
	// PostgreSQL passes a path that is relative to the data directory.
	if !filepath.IsAbs(segment) {
		segment = filepath.Join(c.DataDir(), segment)
	}
	_, err = tool.Run(ctx, stanza, "archive-push", append(options, "--pg1-path="+c.DataDir(), segment)...)
	if !pgbackrest.Taken(err) {
		return err
	}
	left, unknown := c.left(ctx, segment)
	if unknown != nil {
		return errors.Join(err, unknown)
	}
	if left {
		return nil
	}
	same, unknown := alike(ctx, tool, stanza, c.DataDir(), segment)
	switch {
	case unknown != nil:
		return errors.Join(err, unknown)
	case !same:
		return fmt.Errorf("another cluster with this one's system identifier archives to the same place: give one of them another prefix in backup.destination: %w", err)
	}
	return nil
}

// left reports whether the server's lineage left a timeline in a segment. A standby whose
// connection broke as it followed to the next timeline keeps such a file, as far as it was
// filled, and archives it once it leads. Another server may have archived more under that
// name, and no restore along this server's timelines reads either.
func (c Config) left(ctx context.Context, segment string) (bool, error) {
	s, ok := wal.Parse(filepath.Base(segment))
	if !ok {
		return false, nil
	}
	timeline, err := pgdata.Timeline(ctx, c.DataDir())
	if err != nil {
		return false, err
	}
	lineage, err := c.lineage(uint32(timeline)) //nolint:gosec // timelines have 32 bits
	if err != nil {
		return false, err
	}
	return lineage.LeftIn(s), nil
}

func (c Config) failureFile() string { return filepath.Join(c.Socket, instance.ArchiveFailureFile) }

// noteFailure notes a failure, or with nil that there is none. An error of writing it is
// ignored: the log contains the failure too.
func (c Config) noteFailure(err error) {
	if err == nil {
		_ = os.Remove(c.failureFile())
		return
	}
	_ = os.WriteFile(c.failureFile(), []byte(err.Error()), 0o600) //nolint:gosec // the folder is the pod's
}

// noteSlow notes that a segment takes long, unless a failure is noted, which is more specific.
func (c Config) noteSlow(segment string) {
	if c.Failure() == "" {
		c.noteFailure(fmt.Errorf("segment %s is not in the archive after a minute: the store is slow or cannot be reached", filepath.Base(segment)))
	}
}

// Failure returns the failure of archiving that was noted last, or "".
func (c Config) Failure() string {
	b, err := os.ReadFile(c.failureFile())
	if err != nil {
		return ""
	}
	return string(b)
}
