package archive

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// Push a segment of WAL into the archive, as PostgreSQL's archive command. What
// goes wrong is noted where the instance manager finds it.
func Push(ctx context.Context, c Config, segment string, log io.Writer) error {
	err := push(ctx, c, segment, log)
	c.noteFailure(err)
	return err
}

func push(ctx context.Context, c Config, segment string, log io.Writer) error {
	stanza, err := pgbackrest.Stanza(c.DataDir())
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
	_, err = tool.Run(ctx, stanza, "archive-push", "--pg1-path="+c.DataDir(), segment)
	return err
}

func (c Config) failureFile() string { return filepath.Join(c.Socket, instance.ArchiveFailureFile) }

// noteFailure, or that there is none. It is nobody's loss when it can not be
// written: the log has it too.
func (c Config) noteFailure(err error) {
	if err == nil {
		_ = os.Remove(c.failureFile())
		return
	}
	_ = os.WriteFile(c.failureFile(), []byte(err.Error()), 0o600)
}

// Failure of archiving that was noted last, or "".
func (c Config) Failure() string {
	b, err := os.ReadFile(c.failureFile())
	if err != nil {
		return ""
	}
	return string(b)
}
