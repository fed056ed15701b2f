package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// timelineAgain is the pause before NewTimeline is retried.
const timelineAgain = 10 * time.Second

// AskTimeline has Prepare call NewTimeline before the server starts. after is the last
// timeline that the cluster is known to have had. With alone the archive is not searched.
func (c Config) AskTimeline(after int64, alone bool) error {
	if s := c.TimelineState(); s != nil && !s.Withdrawn && s.After == after && s.Alone == alone {
		return nil
	}
	return c.noteTimeline(instance.TimelineState{After: after, Alone: alone})
}

// ForgetTimeline undoes AskTimeline.
func (c Config) ForgetTimeline() error {
	if err := os.Remove(c.timelineFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget that a timeline is to begin: %w", err)
	}
	return nil
}

// TimelineState returns the state that AskTimeline or WithdrawTimeline has noted, or nil if
// none is.
func (c Config) TimelineState() *instance.TimelineState {
	data, err := os.ReadFile(c.timelineFile())
	if err != nil {
		return nil
	}
	s := &instance.TimelineState{}
	// A file that cannot be parsed counts as an empty state.
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

// Begun returns the timeline that NewTimeline has begun and that the server has not led on
// yet, or 0.
func (c Config) Begun() int64 {
	data, err := os.ReadFile(c.begunFile())
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(data), 10, 64)
	return n
}

// ForgetBegun removes the number that Begun returns. It is called once the server leads, or
// follows another one.
func (c Config) ForgetBegun() error {
	if err := os.Remove(c.begunFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget which timeline was begun: %w", err)
	}
	return nil
}

func (c Config) begunFile() string { return filepath.Join(c.Volume, instance.BegunFile) }

// WithdrawTimeline keeps the server from starting, since it is no longer to lead.
func (c Config) WithdrawTimeline() error {
	return c.noteTimeline(instance.TimelineState{Withdrawn: true, Message: "The server was to lead and is not any more: its pod is replaced"})
}

// Prepare prepares the data for a server that starts: after AskTimeline it calls NewTimeline
// until that succeeds, and notes why an attempt failed. Meanwhile it answers the kubelet's
// liveness probe at address, as Patroni does afterwards.
func Prepare(ctx context.Context, c Config, address string, by control.TLS, log io.Writer) error {
	if c.TimelineState() == nil {
		return nil
	}
	defer alive(ctx, address, by, log)()
	for s := c.TimelineState(); s != nil; s = c.TimelineState() {
		if !s.Withdrawn {
			err := c.NewTimeline(ctx, log)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				_, _ = fmt.Fprintln(log, err)
			}
			if done, err := c.settle(*s, err); done || err != nil {
				return err
			}
		}
		if !pause(ctx, timelineAgain) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// settle notes the result of an attempt, and reports whether Prepare is done. If the state has
// changed since the attempt began, the result is ignored.
func (c Config) settle(asked instance.TimelineState, err error) (done bool, _ error) {
	now := c.TimelineState()
	switch {
	case now == nil || *now != asked:
		return now == nil, nil
	case err == nil:
		return true, c.ForgetTimeline()
	}
	asked.Message = err.Error()
	return false, c.noteTimeline(asked)
}

// alive answers the kubelet's liveness probe, as Patroni will, until stop is called.
func alive(ctx context.Context, address string, by control.TLS, log io.Writer) (stop func()) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		_, _ = fmt.Fprintf(log, "cannot answer probes at %s: %v\n", address, err)
		return func() {}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+instance.LivenessPath, func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Handler: mux, TLSConfig: by.Server(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return func() { _ = server.Close() }
}

// errWithdrawn is the error for a server that is no longer to lead.
var errWithdrawn = errors.New("the server is not to lead any more")

// NewTimeline makes sure that promoting a stopped server does not take the number of a
// timeline on which another server has led. The data may be older than that timeline: it is
// from a retained volume. PostgreSQL would use the number again, which would mix the histories
// and the WAL of two branches in the archive, and pg_rewind, which compares the numbers, would
// not rewind the other server. It may be called again.
func (c Config) NewTimeline(ctx context.Context, log io.Writer) error {
	asked := instance.TimelineState{}
	if s := c.TimelineState(); s != nil {
		asked = *s
	}
	taken := uint32(asked.After) //nolint:gosec // timelines have 32 bits
	if !asked.Alone {
		archived, err := c.LastTimeline(ctx, log)
		if err != nil {
			return err
		}
		taken = max(taken, archived)
	}
	if taken == 0 {
		return nil
	}
	data := pgdata.Read(ctx, c.DataDir())
	if data.State != instance.DataWhole {
		return fmt.Errorf("cannot begin a timeline with data that is %s: %s", data.State, data.Problem)
	}
	from := uint32(data.Timeline) //nolint:gosec // timelines have 32 bits
	if taken <= from {
		return nil
	}
	if s := c.TimelineState(); s == nil || s.Withdrawn {
		return errWithdrawn
	}
	if err := c.forgetProcess(); err != nil {
		return err
	}
	// Until the server leads no other server has seen that timeline, and another one may begin
	// one of the same number. So it is noted.
	if err := os.WriteFile(c.begunFile(), []byte(strconv.FormatUint(uint64(taken)+1, 10)), 0o600); err != nil {
		return fmt.Errorf("cannot note which timeline begins: %w", err)
	}
	t := recovery.Timeline{DataDir: c.DataDir(), WorkDir: filepath.Join(os.TempDir(), "timeline"), From: from, Taken: taken, Log: log}
	if err := t.Begin(ctx); err != nil {
		return err
	}
	after := pgdata.Read(ctx, c.DataDir())
	if n := len(after.History); after.Timeline != int64(t.Taken)+1 || n == 0 || after.History[n-1].Timeline != data.Timeline {
		return fmt.Errorf("cannot begin a timeline: the data was on timeline %d and %d is taken, and it is on timeline %d now", from, t.Taken, after.Timeline)
	}
	return nil
}

// LastTimeline returns the last timeline in the archive, or 0.
func (c Config) LastTimeline(ctx context.Context, log io.Writer) (uint32, error) {
	tool, err := c.Tool(log)
	if errors.Is(err, ErrNone) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	stanza, err := c.Stanza()
	if err != nil {
		return 0, err
	}
	archive, err := tool.Archive(ctx, stanza)
	if errors.Is(err, pgbackrest.ErrNoArchive) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot ask the archive for its timelines: %w", err)
	}
	timelines, err := archive.Timelines(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot ask the archive for its timelines: %w", err)
	}
	return slices.Max(append(timelines, 0)), nil
}

// forgetProcess removes the process ID of a server that was killed: another program may have
// that number by now, and PostgreSQL would take it for its own server.
func (c Config) forgetProcess() error {
	if !errors.Is(pgdata.Signal(c.DataDir(), 0), pgdata.ErrStopped) {
		return nil
	}
	if err := os.Remove(filepath.Join(c.DataDir(), "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot begin a timeline: %w", err)
	}
	return nil
}
