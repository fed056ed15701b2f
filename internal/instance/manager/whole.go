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
}

// keepWhole closes what gaps there are in the archive, notes those that cannot be
// closed, and lets go of WAL that is archived.
func (a *archiving) keepWhole(ctx context.Context, now time.Time, s postgres.Archiver) {
	if !a.created {
		return
	}
	a.list(ctx, now)
	if !a.compared {
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
	before := instance.Cluster{}
	if a.known = a.reported(instance.ClusterKey, &before); a.known && before.Archive != nil {
		a.gaps, a.recoverable = before.Archive.Gaps, before.Archive.Recoverable
	}
	return a.known
}

func (a *archiving) compare(ctx context.Context, now time.Time, s postgres.Archiver) {
	if now.Sub(a.attempt) < compareAgain {
		return
	}
	a.attempt = now
	lost, err := a.complete(ctx, s.Current)
	if !a.note("compare the archive with WAL", err) {
		return
	}
	from := a.recoverable
	if last := a.report().archive.Recoverable; last != nil {
		from = last
	}
	a.compared, a.gaps = true, withLost(a.gaps, lost, from)
}

// list backups while there are gaps.
func (a *archiving) list(ctx context.Context, now time.Time) {
	period := closedPeriod
	if (&instance.Archive{Gaps: a.gaps}).Open() {
		period = openPeriod
	}
	if len(a.gaps) == 0 || now.Sub(a.listed) < period {
		return
	}
	a.listed = now
	sets, err := a.sets(ctx)
	if a.note("list backups", err) {
		a.gaps = withSets(a.gaps, sets)
	}
}

// withLost are gaps with ranges that were found to be lost, those that are known
// already not twice.
func withLost(gaps []instance.Gap, lost []wal.Range, from *time.Time) []instance.Gap {
	out := slices.Clone(gaps)
	for _, r := range lost {
		if !slices.ContainsFunc(gaps, func(g instance.Gap) bool { return g.First == r.First.String() }) {
			out = append(out, instance.Gap{First: r.First.String(), Last: r.Last.String(), From: from})
		}
	}
	return out
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
