package manager

import (
	"context"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

const (
	// compareAgain is the pause before the archive is compared with WAL again after a failure.
	compareAgain = 30 * time.Second

	// Periods in which backups are listed: openPeriod while a gap is open or there is no
	// backup, and closedPeriod while a backup from before a gap may expire.
	openPeriod   = time.Minute
	closedPeriod = time.Hour
)

// whole records whether the archive has gaps. PostgreSQL records for the WAL that it wrote
// itself whether it is archived. What an earlier primary wrote has to be compared with the
// archive.
type whole struct {
	// compared is true once the archive was compared since this server leads, or since the
	// repository was set up.
	compared bool
	attempt  time.Time

	// outdated is true if the archive was compared after the statistics were read: segments that
	// were queued then do not wait according to these.
	outdated bool

	// unlike is why the archive cannot be compared, and since is when that was first attempted.
	// Until it is compared all WAL is kept.
	unlike string
	since  time.Time

	// known is true once gaps contains those that the primary before reported, and recoverable
	// the newest commit that could be restored then, or nil.
	known       bool
	gaps        []instance.Gap
	recoverable *beat
	listed      time.Time

	// backedUp is true if the repository contained a backup when it was last read.
	backedUp bool
}

// keepWhole closes what gaps it can in the archive, records the others, and releases WAL that
// is archived.
func (a *archiving) keepWhole(ctx context.Context, now time.Time, s postgres.Archiver) {
	a.outdated = false
	if !a.created {
		return
	}
	a.list(ctx, now, s)
	if !a.compared || a.open() && now.Sub(a.attempt) >= openPeriod {
		// Nothing is released by statistics that may be outdated now.
		a.compare(ctx, now, s)
		return
	}
	if at, ok := keep(s); ok {
		a.Note("release archived WAL", a.server.Release(ctx, instance.ArchiveSlot, at.Start()))
	}
}

// remember loads what the primary before has reported. It returns false while that is not
// known.
func (a *archiving) remember() bool {
	if a.known {
		return true
	}
	before, known := a.LastCluster()
	if a.known = known; known && before.Archive != nil {
		a.gaps, a.backedUp = before.Archive.Gaps, before.Archive.BackedUp
		if !before.Archive.Lost() {
			a.recoverable = recoverable(before.Archive)
		}
	}
	return a.known
}

func (a *archiving) compare(ctx context.Context, now time.Time, s postgres.Archiver) {
	if now.Sub(a.attempt) < compareAgain {
		return
	}
	a.attempt = now
	if a.since.IsZero() {
		a.since = now
	}
	// One that fails may have queued segments before.
	a.outdated = true
	c, err := a.complete(ctx, s.Current)
	if !a.Note("compare the archive with WAL", err) {
		a.unlike = err.Error()
		return
	}
	a.unlike, a.since = "", time.Time{}
	if !c.BackedUp {
		a.gaps = withoutSets(a.gaps, c.Compared, a.backedUp)
		a.compared, a.backedUp, a.recoverable = true, false, nil
		return
	}
	from, state := a.recoverable, a.report().archive
	if last := recoverable(&state); last != nil {
		from = last
	}
	// A gap that is older than the newest backup has ended with it.
	a.compared, a.backedUp, a.gaps = true, true, withSets(withLost(a.gaps, c, from), c.Sets)
}

func (a *archiving) open() bool { return (&instance.Archive{Gaps: a.gaps}).Open() }

// list lists the backups until there is one, and while there are gaps.
func (a *archiving) list(ctx context.Context, now time.Time, s postgres.Archiver) {
	period := closedPeriod
	if a.open() || !a.backedUp {
		period = openPeriod
	}
	if len(a.gaps) == 0 && a.backedUp || now.Sub(a.listed) < period {
		return
	}
	a.listed = now
	sets, err := a.sets(ctx, s.Current)
	if a.Note("list backups", err) {
		a.gaps, a.backedUp = withSets(a.gaps, sets), a.backedUp || len(sets) > 0
	}
}

// withLost returns the gaps, given the WAL that was found to be lost, and the newest commit that
// could be restored until then, or nil. A gap that is open, was compared and was not found again
// has been filled by a standby. WAL from before the newest backup may not be compared any more:
// that backup ends the gap.
func withLost(gaps []instance.Gap, c *archive.Comparison, from *beat) []instance.Gap {
	out := slices.DeleteFunc(slices.Clone(gaps), func(g instance.Gap) bool {
		first, ok := wal.Parse(g.First)
		compared := !ok || c.Compared.First.Number <= first.Number
		return g.To == nil && compared && !slices.ContainsFunc(c.Lost, func(r wal.Range) bool { return within(r, g) })
	})
	for _, r := range c.Lost {
		if !slices.ContainsFunc(out, func(g instance.Gap) bool { return within(r, g) }) {
			out = append(out, instance.Gap{First: r.First.String(), Last: r.Last.String()})
			if from != nil && from.precedes(out) {
				out[len(out)-1].From = &from.at
			}
		}
	}
	return out
}

// precedes reports whether a commit is known to come before all gaps that are open, so that a
// restore gets to it. A store may lose WAL that is older than what could be restored until then.
func (b *beat) precedes(gaps []instance.Gap) bool {
	this, known := wal.Parse(b.segment)
	return !slices.ContainsFunc(gaps, func(g instance.Gap) bool {
		first, _ := wal.Parse(g.First)
		return g.To == nil && (!known || first.Number <= this.Number)
	})
}

// recoverable returns the newest commit that a state has as recoverable, or nil.
func recoverable(state *instance.Archive) *beat {
	if state == nil || state.Recoverable == nil {
		return nil
	}
	return &beat{segment: state.RecoverableSegment, at: *state.Recoverable}
}

// keepRecoverable has a state without a recoverable time keep that of an earlier state, unless that
// cannot be restored any more: all backups are lost, or there is a gap before it.
func keepRecoverable(state, earlier *instance.Archive) {
	if last := recoverable(earlier); last != nil && state.Recoverable == nil && !state.Lost() && last.precedes(state.Gaps) {
		state.Recoverable, state.RecoverableSegment = &last.at, last.segment
	}
}

// withoutSets returns the gaps while there is no backup. If there was one before, the
// repository has lost what it held: earlier gaps no longer matter, and the WAL that is there
// restores nothing until there is a newer backup.
func withoutSets(gaps []instance.Gap, compared wal.Range, backedUp bool) []instance.Gap {
	if !backedUp {
		return gaps
	}
	return []instance.Gap{{First: compared.First.String(), Last: compared.Last.String()}}
}

// within reports whether a range is a part of a gap.
func within(r wal.Range, g instance.Gap) bool {
	first, _ := wal.Parse(g.First)
	last, _ := wal.Parse(g.Last)
	return first.Number <= r.First.Number && r.Last.Number <= last.Number
}

// withSets returns the gaps, given the backups, oldest first. The first backup that began
// after a gap ends it, and a gap is dropped once all backups began after it.
func withSets(gaps []instance.Gap, sets []pgbackrest.Set) []instance.Gap {
	var out []instance.Gap
	for _, g := range gaps {
		last, _ := wal.Parse(g.Last)
		after := slices.IndexFunc(sets, func(set pgbackrest.Set) bool {
			start, ok := wal.Parse(set.WALStart)
			return ok && start.Number > last.Number
		})
		switch {
		case after == 0:
			continue
		case after > 0 && g.To == nil:
			g.To = &sets[after].Stop
			if g.From != nil && g.From.After(*g.To) {
				// The gap was found after that backup, and what was recoverable then is later.
				g.From = nil
			}
		}
		out = append(out, g)
	}
	return out
}

// waiting returns the first segment that waits to be archived, and whether there is one.
func waiting(s postgres.Archiver) (wal.Segment, bool) {
	const timeline = 8
	if len(s.Current) < timeline {
		return wal.Segment{}, false
	}
	return wal.Parse(s.Current[:timeline] + s.First)
}

// keep returns the first segment that the archive does not have yet.
func keep(s postgres.Archiver) (wal.Segment, bool) {
	if first, ok := waiting(s); ok {
		return first, true
	}
	return wal.Parse(s.Current)
}
