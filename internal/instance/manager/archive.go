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
	"github.com/storeplane/storeplane/internal/instance/manager/mounted"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

const (
	// archivePeriod is how often archiving is checked.
	archivePeriod = 10 * time.Second

	// beatPeriod is how often a transaction is committed only to have a time to recover to.
	beatPeriod = time.Minute

	// createAgain is the pause before a repository is set up again after a failure.
	// createWithin bounds each call of pgBackRest that sets up or lists.
	// compareWithin bounds a comparison: an archive of weeks has millions of objects to list.
	createAgain   = 30 * time.Second
	createWithin  = 3 * time.Minute
	compareWithin = 15 * time.Minute

	// failingFor is how long archiving fails before that is reported, since PostgreSQL retries
	// it all the time. stuckFor is how long a segment may wait.
	failingFor = time.Minute
	stuckFor   = 5 * time.Minute
)

// archiving is the state of archiving as observed beside the primary. It has a loop of its
// own, so that a store that does not answer delays nothing else.
type archiving struct {
	*Manager
	whole

	// create sets up the stanza in the repository. failure returns why the last segment could
	// not be archived, or "".
	create  func(ctx context.Context) error
	failure func() string

	// place returns the suffix that distinguishes the cluster's stanza from others of the same
	// system identifier.
	place func() (string, error)

	// complete compares the archive with WAL up to a segment. sets returns the backups from
	// which a restore reaches a segment.
	complete func(ctx context.Context, current string) (*archive.Comparison, error)
	sets     func(ctx context.Context, current string) ([]pgbackrest.Set, error)

	// timeline returns the last timeline in the archive.
	timeline func(ctx context.Context) (uint32, error)
	twin     twin

	// version is that of the configuration with which the repository was set up.
	version string
	created bool
	tried   time.Time

	beats   []beat
	beaten  time.Time
	failing time.Time

	mu      sync.Mutex
	state   *instance.Archive
	system  string
	stanza  string
	problem string
}

// beat is the time of a commit, and the segment of WAL that contains it.
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
			return c.Create(ctx, logWriter{m.Log})
		},
		failure: c.Failure,
		place:   c.Place,
		complete: func(ctx context.Context, current string) (*archive.Comparison, error) {
			ctx, cancel := context.WithTimeout(ctx, compareWithin)
			defer cancel()
			return archive.Complete(ctx, c, current, logWriter{m.Log})
		},
		sets: func(ctx context.Context, current string) ([]pgbackrest.Set, error) {
			ctx, cancel := context.WithTimeout(ctx, createWithin)
			defer cancel()
			return c.Sets(ctx, current, logWriter{m.Log})
		},
		timeline: func(ctx context.Context) (uint32, error) {
			ctx, cancel := context.WithTimeout(ctx, createWithin)
			defer cancel()
			return c.LastTimeline(ctx, logWriter{m.Log})
		},
	}
}

// logWriter writes the output of pgBackRest into the log.
type logWriter struct{ log *slog.Logger }

var _ io.Writer = logWriter{}

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("pgBackRest printed", "text", string(p))
	return len(p), nil
}

// run checks archiving until the context ends.
func (a *archiving) run(ctx context.Context) {
	for ctx.Err() == nil {
		before := a.report()
		a.pass(ctx, time.Now())
		if after := a.report(); !reflect.DeepEqual(after, before) {
			a.wakePrimary.Send()
		}
		pace.Wait(ctx, archivePeriod)
	}
}

func (a *archiving) pass(ctx context.Context, now time.Time) {
	_, desired, ok := a.Target()
	if !ok {
		return
	}
	stats, err := a.server.Archiver(ctx)
	if !a.Note("read the archive", err) {
		return
	}
	place, err := a.place()
	if !a.Note("read the cluster's place in the repository", err) {
		return
	}
	stanza := pgbackrest.StanzaOf(stats.System, place)
	if desired.Backup == nil {
		a.publishArchive(nil, stats.System, stanza, "")
		a.beats, a.created, a.whole, a.twin = nil, false, whole{}, twin{}
		a.metrics.Archive(nil, 0)
		return
	}
	if !a.remember() {
		return
	}
	problem := a.setUp(ctx, now)
	a.beat(ctx, now)
	a.keepWhole(ctx, now, stats)
	a.lookForTwin(ctx, now, stats)
	state := a.judge(stats)
	if strings.Contains(state.Failing, pgbackrest.ArchiveInfo) {
		// The store has lost what it held, so the repository is set up again.
		a.created = false
	}
	if problem != "" {
		// The problem is reported on its own.
		state.Failing = ""
	}
	a.publishArchive(state, stats.System, stanza, problem)
	a.metrics.Archive(state, stats.Waiting)
}

// setUp sets up the repository once for each configuration, and returns why that failed, or
// "".
func (a *archiving) setUp(ctx context.Context, now time.Time) string {
	v := mounted.Version(a.Repository) + mounted.Version(a.Store) + mounted.Version(filepath.Dir(a.Key))
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
		// The pod is about to be replaced by one with a repository.
		return ""
	case pgbackrest.Locked(err):
		// A segment is being archived. The next pass tries again.
		a.tried = time.Time{}
		return a.report().problem
	}
	a.created, a.compared = a.Note("set up the repository", err), false
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
	if !a.Note("commit a beat", err) {
		return
	}
	a.beaten = now
	a.beats = append(a.beats, beat{segment: segment, at: at})
	// Beats of one day are enough: archiving that is behind by more was reported long before.
	if n := len(a.beats); n > 1440 {
		a.beats = a.beats[n-1440:]
	}
}

// judge returns the state of archiving, given the server's statistics of its archiver.
func (a *archiving) judge(s postgres.Archiver) *instance.Archive {
	state, last := &instance.Archive{Gaps: a.gaps, BackedUp: a.backedUp}, a.report().archive
	keepRecoverable(state, &last)
	rest := a.beats[:0]
	for _, b := range a.beats {
		if !a.compared || a.outdated || !archived(b.segment, s) {
			rest = append(rest, b)
			continue
		}
		if state.Open() || a.twin.timeline != 0 {
			// A restore does not get past the gap to this time, or follows the twin.
			continue
		}
		if at := b.at.UTC().Truncate(time.Second); state.Recoverable == nil || at.Sub(*state.Recoverable) >= instance.ArchiveStep {
			state.Recoverable, state.RecoverableSegment = &at, b.segment
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
		// The archive command is still trying, and has noted a failure.
		state.Failing = a.failure()
	case s.Now.Sub(s.Oldest) >= stuckFor:
		state.Failing = "WAL waits to be archived for more than five minutes"
	}
	switch {
	case state.Failing != "":
	case a.twin.timeline != 0:
		state.Failing, state.Archiving = a.twin.message(s.Current), true
	case !a.compared && a.unlike != "" && s.Now.Sub(a.since) >= stuckFor:
		state.Failing, state.Archiving = "the archive cannot be compared with the servers' WAL, all of which is kept until then: "+a.unlike, true
	}
	state.Full = pgbackrest.Full(state.Failing)
	if state.Failing != "" && !s.LastAt.IsZero() {
		at := s.LastAt.UTC().Truncate(time.Second)
		state.Since = &at
	}
	return state
}

// archived reports whether a segment and all before it are in the archive, given the server's
// statistics. It compares numbers without the timelines, which are the first eight digits of a
// segment's name.
func archived(segment string, s postgres.Archiver) bool {
	// A .backup file is archived after the segment that it names. A .partial file is not a
	// whole segment.
	last, kind, _ := strings.Cut(s.Last, ".")
	newest, ok := wal.Parse(last)
	this, isSegment := wal.Parse(segment)
	if !ok || !isSegment || kind == "partial" || this.Number > newest.Number {
		return false
	}
	// The last archived segment may be of an older timeline, and older segments may still
	// wait.
	if now, ok := wal.Parse(s.Current); !ok || this.Number >= now.Number {
		return false
	}
	first, waits := waiting(s)
	return !waits || this.Number < first.Number
}

// snapshot is a copy of the state of archiving.
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
		// Equal times become identical pointers, so that comparing the reports finds no
		// change.
		for _, p := range []struct{ now, before **time.Time }{{&state.Recoverable, &a.state.Recoverable}, {&state.Since, &a.state.Since}} {
			if *p.now != nil && *p.before != nil && (*p.now).Equal(**p.before) {
				*p.now = *p.before
			}
		}
	}
	a.state, a.system, a.stanza, a.problem = state, system, stanza, problem
}
