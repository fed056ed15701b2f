package manager

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

const (
	// archivePeriod is how often archiving is looked at.
	archivePeriod = 10 * time.Second

	// beatPeriod is how often something is committed, to have a time to recover
	// to.
	beatPeriod = time.Minute

	// createAgain is when a repository is set up again after a failure, and
	// createWithin how long that may take.
	createAgain  = 30 * time.Second
	createWithin = 3 * time.Minute

	// failingFor is how long archiving fails before that is told: it is tried
	// again all the time. stuckFor is how long a segment may wait.
	failingFor = time.Minute
	stuckFor   = 5 * time.Minute
)

// archiving is what is known beside the primary of its archive. A loop of its own
// finds it out: a store that does not answer holds up nothing else.
type archiving struct {
	*Manager

	// create the place in the repository, and failure of the last segment.
	create  func(ctx context.Context) error
	failure func() string

	// place of the cluster beside others of its system identifier.
	place func() (string, error)

	// complete the archive up to a segment, and sets of backups in it.
	complete func(ctx context.Context, current string) (*archive.Comparison, error)
	sets     func(ctx context.Context, current string) ([]pgbackrest.Set, error)

	// version of the configuration that it was created with.
	version string
	created bool
	tried   time.Time

	beats   []beat
	beaten  time.Time
	failing time.Time

	whole

	mu      sync.Mutex
	state   *instance.Archive
	system  string
	stanza  string
	problem string
}

// beat is a commit at a time, in a segment of WAL.
type beat struct {
	segment string
	at      time.Time
}

func (m *Manager) newArchiving() *archiving {
	c := m.archive()
	return &archiving{
		Manager: m,
		create: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, createWithin)
			defer cancel()
			return c.Create(ctx, logWriter{m.log})
		},
		failure: c.Failure,
		place:   c.Place,
		complete: func(ctx context.Context, current string) (*archive.Comparison, error) {
			ctx, cancel := context.WithTimeout(ctx, createWithin)
			defer cancel()
			return archive.Complete(ctx, c, current, logWriter{m.log})
		},
		sets: func(ctx context.Context, current string) ([]pgbackrest.Set, error) {
			ctx, cancel := context.WithTimeout(ctx, createWithin)
			defer cancel()
			return c.Sets(ctx, current, logWriter{m.log})
		},
	}
}

// logWriter puts what a program says into the log.
type logWriter struct{ log *slog.Logger }

var _ io.Writer = logWriter{}

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("pgBackRest says", "text", string(p))
	return len(p), nil
}

// run until the context ends.
func (a *archiving) run(ctx context.Context) {
	for ctx.Err() == nil {
		before := a.report()
		a.pass(ctx, time.Now())
		if after := a.report(); !reflect.DeepEqual(after, before) {
			a.wakePrimary.send()
		}
		wait(ctx, archivePeriod)
	}
}

func (a *archiving) pass(ctx context.Context, now time.Time) {
	_, desired, ok := a.target()
	if !ok {
		return
	}
	stats, err := a.server.Archiver(ctx)
	if !a.note("look at the archive", err) {
		return
	}
	place, err := a.place()
	if !a.note("read the cluster's place in the repository", err) {
		return
	}
	stanza := pgbackrest.StanzaOf(stats.System, place)
	if desired.Backup == nil {
		a.publishArchive(nil, stats.System, stanza, "")
		a.beats, a.created, a.whole = nil, false, whole{}
		a.metrics.archive(nil, 0)
		return
	}
	if !a.remember() {
		return
	}
	problem := a.setUp(ctx, now)
	a.beat(ctx, now)
	a.keepWhole(ctx, now, stats)
	state := a.judge(stats)
	if strings.Contains(state.Failing, pgbackrest.ArchiveInfo) {
		// The store has lost what it held: it is set up again.
		a.created = false
	}
	if problem != "" {
		// One reason is enough.
		state.Failing = ""
	}
	a.publishArchive(state, stats.System, stanza, problem)
	a.metrics.archive(state, stats.Waiting)
}

// setUp the repository once for each configuration, and say in words why it cannot
// be.
func (a *archiving) setUp(ctx context.Context, now time.Time) string {
	v := version(a.Repository) + version(a.Store) + version(filepath.Dir(a.Key))
	if a.created && a.version == v {
		return ""
	}
	if a.version == v && now.Sub(a.tried) < createAgain {
		return a.report().problem
	}
	a.version, a.tried = v, now
	err := a.create(ctx)
	switch {
	case errors.Is(err, archive.ErrNone):
		// The pod is about to be replaced.
		return ""
	case pgbackrest.Locked(err):
		// A segment is on its way there. The next pass tries again.
		a.tried = time.Time{}
		return a.report().problem
	}
	a.created, a.compared = a.note("set up the repository", err), false
	if err != nil {
		return err.Error()
	}
	return ""
}

func (a *archiving) beat(ctx context.Context, now time.Time) {
	if now.Sub(a.beaten) < beatPeriod {
		return
	}
	segment, at, err := a.server.Beat(ctx)
	if !a.note("commit a beat", err) {
		return
	}
	a.beaten = now
	a.beats = append(a.beats, beat{segment: segment, at: at})
	// A day of them is far more than anybody can recover to without knowing.
	if n := len(a.beats); n > 1440 {
		a.beats = a.beats[n-1440:]
	}
}

// judge what the server says of its archiver.
func (a *archiving) judge(s postgres.Archiver) *instance.Archive {
	state := &instance.Archive{Gaps: a.gaps, BackedUp: a.backedUp}
	if last := a.report().archive; last.Recoverable != nil && !state.Lost() {
		state.Recoverable = last.Recoverable
	}
	rest := a.beats[:0]
	for _, b := range a.beats {
		if !a.compared || !archived(b.segment, s) {
			rest = append(rest, b)
			continue
		}
		if state.Open() {
			// It lies beyond what a restore gets past.
			continue
		}
		if at := b.at.UTC().Truncate(time.Second); state.Recoverable == nil || at.Sub(*state.Recoverable) >= instance.ArchiveStep {
			state.Recoverable = &at
		}
	}
	a.beats = rest

	fails := s.FailedAt.After(s.LastAt)
	switch {
	case !fails:
		a.failing = time.Time{}
	case a.failing.IsZero():
		a.failing = s.FailedAt
	}
	switch {
	case fails && s.Now.Sub(a.failing) >= failingFor:
		state.Failing = a.failure()
		if state.Failing == "" {
			state.Failing = "the archive command fails: see the log of " + a.Pod
		}
	case s.Waiting == 0 || s.Oldest.IsZero() || s.Now.Sub(s.Oldest) < failingFor:
	case a.failure() != "":
		// The archive command has not given up yet, and has said something.
		state.Failing = a.failure()
	case s.Now.Sub(s.Oldest) >= stuckFor:
		state.Failing = "WAL waits to be archived for more than five minutes"
	}
	state.Full = pgbackrest.Full(state.Failing)
	if state.Failing != "" && !s.LastAt.IsZero() {
		at := s.LastAt.UTC().Truncate(time.Second)
		state.Since = &at
	}
	return state
}

// archived tells whether a segment and all before it are in the archive, by what
// the server says of it. Timelines play no part: those are in the first eight
// digits of a segment's name.
func archived(segment string, s postgres.Archiver) bool {
	// What marks a backup comes after its segment. What a timeline left unfinished
	// is no segment.
	last, kind, _ := strings.Cut(s.Last, ".")
	newest, ok := wal.Parse(last)
	this, isSegment := wal.Parse(segment)
	if !ok || !isSegment || kind == "partial" || this.Number > newest.Number {
		return false
	}
	// The last one may be of an older timeline, and older ones may wait.
	if now, ok := wal.Parse(s.Current); !ok || this.Number >= now.Number {
		return false
	}
	first, waits := waiting(s)
	return !waits || this.Number < first.Number
}

// snapshot of what is known.
type snapshot struct {
	archive instance.Archive
	on      bool
	system  string
	stanza  string
	problem string
}

func (a *archiving) report() snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := snapshot{system: a.system, stanza: a.stanza, problem: a.problem, on: a.state != nil}
	if a.state != nil {
		s.archive = *a.state
	}
	return s
}

func (a *archiving) publishArchive(state *instance.Archive, system, stanza, problem string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if state != nil && a.state != nil {
		// Equal times are the same time.
		for _, p := range []struct{ now, before **time.Time }{{&state.Recoverable, &a.state.Recoverable}, {&state.Since, &a.state.Since}} {
			if *p.now != nil && *p.before != nil && (*p.now).Equal(**p.before) {
				*p.now = *p.before
			}
		}
	}
	a.state, a.system, a.stanza, a.problem = state, system, stanza, problem
}
