package manager

import (
	"context"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

const (
	// compareAgain is when the archive is compared with WAL again after a
	// failure.
	compareAgain = 30 * time.Second

	// Periods in which backups are listed: while one has to end a gap, and while
	// one may expire that is from before a gap.
	openPeriod   = time.Minute
	closedPeriod = time.Hour
)

// whole is what is known of the archive being without gaps. PostgreSQL knows of
// the WAL that it wrote itself whether it is archived. What a primary wrote that
// led before it has to be compared.
type whole struct {
	// compared once since this server leads, or since the repository was set up.
	compared bool
	attempt  time.Time

	// known says that gaps has what the primary before found, and recoverable
	// what could be restored then.
	known       bool
	gaps        []instance.Gap
	recoverable *time.Time
	listed      time.Time

	// backedUp says that there was a backup when the repository was last read.
	backedUp bool
}

// keepWhole closes what gaps there are in the archive, notes those that cannot be
// closed, and lets go of WAL that is archived.
func (a *archiving) keepWhole(ctx context.Context, now time.Time, s postgres.Archiver) {
	if !a.created {
		return
	}
	a.list(ctx, now, s)
	if !a.compared || a.open() && now.Sub(a.attempt) >= openPeriod {
		a.compare(ctx, now, s)
		// What is archived again is not among what the server said.
		return
	}
	if at, ok := keep(s); ok {
		a.note("release archived WAL", a.server.Release(ctx, instance.ArchiveSlot, at.Start()))
	}
}

// remember what the primary before has reported.
func (a *archiving) remember() bool {
	if a.known {
		return true
	}
	before, known := a.lastCluster()
	if a.known = known; known && before.Archive != nil {
		a.gaps, a.backedUp = before.Archive.Gaps, before.Archive.BackedUp
		if !before.Archive.Lost() {
			a.recoverable = before.Archive.Recoverable
		}
	}
	return a.known
}

func (a *archiving) compare(ctx context.Context, now time.Time, s postgres.Archiver) {
	if now.Sub(a.attempt) < compareAgain {
		return
	}
	a.attempt = now
	c, err := a.complete(ctx, s.Current)
	if !a.note("compare the archive with WAL", err) {
		return
	}
	if !c.BackedUp {
		a.gaps = withoutSets(a.gaps, c.Compared, a.backedUp)
		a.compared, a.backedUp, a.recoverable = true, false, nil
		return
	}
	from := a.recoverable
	if last := a.report().archive.Recoverable; last != nil {
		from = last
	}
	// What is older than the newest backup has ended already.
	a.compared, a.backedUp, a.gaps = true, true, withSets(withLost(a.gaps, c.Lost, from), c.Sets)
}

func (a *archiving) open() bool { return (&instance.Archive{Gaps: a.gaps}).Open() }

// list backups until there is one, and while there are gaps.
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
	if a.note("list backups", err) {
		a.gaps, a.backedUp = withSets(a.gaps, sets), a.backedUp || len(sets) > 0
	}
}

// withLost are gaps by what was found to be lost. One that is open and not found
// any more has been filled by a standby.
func withLost(gaps []instance.Gap, lost []wal.Range, from *time.Time) []instance.Gap {
	out := slices.DeleteFunc(slices.Clone(gaps), func(g instance.Gap) bool {
		return g.To == nil && !slices.ContainsFunc(lost, func(r wal.Range) bool { return within(r, g) })
	})
	for _, r := range lost {
		if !slices.ContainsFunc(out, func(g instance.Gap) bool { return within(r, g) }) {
			out = append(out, instance.Gap{First: r.First.String(), Last: r.Last.String(), From: from})
		}
	}
	return out
}

// withoutSets are gaps while there is no backup. If there was one before, the
// repository has lost what it held: all gaps before are of no interest, and the WAL
// there is restores nothing until there is a backup that is newer.
func withoutSets(gaps []instance.Gap, compared wal.Range, backedUp bool) []instance.Gap {
	if !backedUp {
		return gaps
	}
	return []instance.Gap{{First: compared.First.String(), Last: compared.Last.String()}}
}

// within says whether a range is a part of a gap.
func within(r wal.Range, g instance.Gap) bool {
	first, _ := wal.Parse(g.First)
	last, _ := wal.Parse(g.Last)
	return first.Number <= r.First.Number && r.Last.Number <= last.Number
}

// withSets are gaps by the backups that there are, oldest first: one that began
// after a gap ends it, and it is of no interest once all of them did.
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
				// It was found after that backup, and what was recoverable then is later.
				g.From = nil
			}
		}
		out = append(out, g)
	}
	return out
}

// waiting is the first segment that waits to be archived, if one does.
func waiting(s postgres.Archiver) (wal.Segment, bool) {
	const timeline = 8
	if len(s.Current) < timeline {
		return wal.Segment{}, false
	}
	return wal.Parse(s.Current[:timeline] + s.First)
}

// keep is the first segment that the archive does not have yet.
func keep(s postgres.Archiver) (wal.Segment, bool) {
	if first, ok := waiting(s); ok {
		return first, true
	}
	return wal.Parse(s.Current)
}
