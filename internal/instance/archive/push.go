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

// slowAfter is how long a segment may take before that is noted. PgBackRest tries
// for minutes before it says that a store cannot be reached.
const slowAfter = time.Minute

// Push a segment of WAL into the archive, as PostgreSQL's archive command. What
// goes wrong is noted where the instance manager finds it. It returns ErrHurried where
// there is no time for it.
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

func push(ctx context.Context, c Config, segment string, log io.Writer, options ...string) error {
	stanza, err := c.Stanza()
	if err != nil {
		return err
	}
	tool, err := c.Tool(log)
	if err != nil {
		return err
	}
	// The path is relative to the data folder.
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

// left says whether the server's past left a timeline in a segment. A standby that was cut
// off as it followed the next one keeps such a file, as far as it was filled, and archives
// it once it leads: what another server has archived under that name may go further, and
// no restore along this server's timelines reads either.
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

// noteFailure, or that there is none. It is nobody's loss when it cannot be
// written: the log has it too.
func (c Config) noteFailure(err error) {
	if err == nil {
		_ = os.Remove(c.failureFile())
		return
	}
	_ = os.WriteFile(c.failureFile(), []byte(err.Error()), 0o600)
}

// noteSlow says that a segment takes long, unless there is a failure that says more.
func (c Config) noteSlow(segment string) {
	if c.Failure() == "" {
		c.noteFailure(fmt.Errorf("segment %s is not in the archive after a minute: the store is slow or cannot be reached", filepath.Base(segment)))
	}
}

// Failure of archiving that was noted last, or "".
func (c Config) Failure() string {
	b, err := os.ReadFile(c.failureFile())
	if err != nil {
		return ""
	}
	return string(b)
}
