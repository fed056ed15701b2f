package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// timelineAgain is when the archive is asked again after a failure.
const timelineAgain = 10 * time.Second

// AskTimeline has Prepare call NewTimeline before the server starts.
func (c Config) AskTimeline() error {
	if c.TimelineState() != nil {
		return nil
	}
	return c.noteTimeline(instance.TimelineState{})
}

// ForgetTimeline takes AskTimeline back.
func (c Config) ForgetTimeline() error {
	if err := os.Remove(c.timelineFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget that a timeline is to begin: %w", err)
	}
	return nil
}

// TimelineState while NewTimeline is to be called, or nil.
func (c Config) TimelineState() *instance.TimelineState {
	data, err := os.ReadFile(c.timelineFile())
	if err != nil {
		return nil
	}
	s := &instance.TimelineState{}
	// What cannot be read is one without words.
	_ = json.Unmarshal(data, s)
	return s
}

func (c Config) timelineFile() string { return filepath.Join(c.Volume, instance.TimelineFile) }

func (c Config) noteTimeline(s instance.TimelineState) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(c.timelineFile(), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot note that a timeline is to begin: %w", err)
	}
	return nil
}

// Prepare the data for a server that starts: where that was asked for NewTimeline is
// called until it succeeds. Why it does not is noted.
func Prepare(ctx context.Context, c Config, log io.Writer) error {
	for c.TimelineState() != nil {
		err := c.NewTimeline(ctx, log)
		if err == nil {
			return c.ForgetTimeline()
		}
		_, _ = fmt.Fprintln(log, err)
		err = errors.Join(err, c.noteTimeline(instance.TimelineState{Message: err.Error()}))
		if !pause(ctx, timelineAgain) {
			return err
		}
	}
	return nil
}

// NewTimeline makes sure that a stopped server can be promoted without spoiling the
// archive. Its data may be older than what the archive has: it was kept from before
// another server went on with a timeline that this server knows nothing of. PostgreSQL
// would take that number again, and the history and the WAL of two branches would be
// mixed up in the archive. To do it twice is fine.
func (c Config) NewTimeline(ctx context.Context, log io.Writer) error {
	tool, err := c.Tool(log)
	if errors.Is(err, ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	stanza, err := c.Stanza()
	if err != nil {
		return err
	}
	archive, err := tool.Archive(ctx, stanza)
	if errors.Is(err, pgbackrest.ErrNoArchive) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot ask the archive for its timelines: %w", err)
	}
	timelines, err := archive.Timelines(ctx)
	if err != nil {
		return fmt.Errorf("cannot ask the archive for its timelines: %w", err)
	}
	data := pgdata.Read(ctx, c.DataDir())
	if data.State != instance.DataWhole {
		return fmt.Errorf("cannot begin a timeline with data that is %s: %s", data.State, data.Problem)
	}
	from := uint32(data.Timeline) //nolint:gosec // PostgreSQL's own are 32 bits
	if len(timelines) == 0 || slices.Max(timelines) <= from {
		return nil
	}
	t := recovery.Timeline{DataDir: c.DataDir(), WorkDir: filepath.Join(os.TempDir(), "timeline"), From: from, Taken: slices.Max(timelines), Log: log}
	return t.Begin(ctx)
}
