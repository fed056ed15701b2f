package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/gtid"
)

const (
	// resumeFrom is how many of the newest segments are read to find out what is archived, and copiesFrom how many
	// backups to find the newest good one.
	resumeFrom = 16
	copiesFrom = 4

	// askWithin is how long the server may take to say what it has executed.
	askWithin = 10 * time.Second

	// recordEvery is how often the store is made to say how far the archive is, if there are no segments.
	recordEvery = 5 * time.Minute
)

// resume finds out what is archived. Without segments the archive begins with all that the server has binary logs of.
func (a *archiver) resume(ctx context.Context, purged gtid.Set) error {
	l, err := a.store.Newest(ctx, resumeFrom)
	if err != nil {
		return err
	}
	have, found := gtid.Set{}, false
	for _, item := range l.Good() {
		s, err := segment.Of(item.Manifest)
		if err != nil || s.System != a.system {
			continue
		}
		have, found = have.Union(s.Before).Union(s.Transactions), true
		a.extend(s)
	}
	if !found {
		a.sayf("the archive of binary logs begins")
		have = purged
		// There is a record before there is a segment: without one the end of the archive may be lost.
		r, err := a.reached(ctx, a.system)
		if err == nil && r == nil {
			err = a.record(ctx, segment.Reached{System: a.system, Executed: purged})
		}
		if err != nil {
			return err
		}
		if r != nil {
			a.had = r.Executed
		}
		switch c, err := a.newestCopies(ctx, a.system); {
		case err != nil:
			return err
		case c.newest != nil && !c.has.Contains(purged):
			a.lose(purged.Minus(c.has), time.Time{})
		}
	}
	a.have, a.known = have, true
	return nil
}

// extend notes that a segment is in the store.
func (a *archiver) extend(s segment.Segment) {
	if s.Last.After(a.last) {
		a.last = s.Last
	}
}

// lose notes that transactions are in no segment, and will be in none: they are in no binary log any more, or too large.
// The time is that of the last transaction before them, or zero if it is not known. While no backup has ended a gap, a
// restore reaches no later time: that nothing was committed for a while after it is known only as long as nothing is missing.
func (a *archiver) lose(lost gtid.Set, last time.Time) {
	if a.state.Ended.IsZero() && a.state.Missing.Contains(lost) {
		return
	}
	a.sayf("transactions, %d in all, are not archived and cannot be any more, so that another backup starts: %s", lost.Len(), lost)
	if a.state.Missing.IsEmpty() || !a.state.Ended.IsZero() {
		a.state.Before = last
	}
	a.state.Missing, a.state.Ended = a.state.Missing.Union(lost), time.Time{}
}

// A copiedSet is what the newest backups of a database have: the newest one is nil if there is none.
type copiedSet struct {
	newest *backup.Manifest

	// has are the transactions of the newest one, and had are those of all that were read: the good ones among the newest
	// copiesFrom, or all if none of these is.
	has, had gtid.Set
}

// newestCopies returns what the newest backups of a database have.
func (j *job) newestCopies(ctx context.Context, system string) (out copiedSet, err error) {
	copies, err := j.storeOf(ctx, backupv1.Physical)
	if err != nil {
		return out, err
	}
	defer func() { _ = copies.Close() }()
	// Those that were not completed count among the newest: before there is none, all are read.
	for _, list := range []func() (*store.Listing, error){
		func() (*store.Listing, error) { return copies.Newest(ctx, copiesFrom) },
		func() (*store.Listing, error) { return copies.List(ctx) },
	} {
		l, err := list()
		if err != nil {
			return out, err
		}
		for _, item := range slices.Backward(l.Good()) {
			if item.Manifest.System != system {
				continue
			}
			has, err := gtid.Parse(item.Manifest.Position)
			if err != nil {
				return out, err
			}
			if out.newest == nil {
				out.newest, out.has = item.Manifest, has
			}
			out.had = out.had.Union(has)
		}
		if out.newest != nil {
			return out, nil
		}
	}
	return out, nil
}

// look looks for a newer backup: whether it has what is missing in the archive, and whether all that was written after
// it is archived.
func (a *archiver) look(ctx context.Context) error {
	if a.state.BackedUp && time.Since(a.looked) < a.pace.Look {
		return nil
	}
	c, err := a.newestCopies(ctx, a.system)
	if err != nil {
		return err
	}
	m, has := c.newest, c.has
	a.looked, a.state.BackedUp = time.Now(), m != nil
	if m == nil {
		if !a.newestHas.IsEmpty() {
			a.sayf("the store has no backup any more")
			a.state.Missing, a.state.Before, a.state.Ended = a.state.Missing.Union(a.newestHas), time.Time{}, time.Time{}
			a.newest, a.newestHas = "", gtid.Set{}
		}
		return nil
	}
	if !a.state.Missing.IsEmpty() && a.state.Ended.IsZero() && has.Contains(a.state.Missing) {
		a.state.Ended = m.Finished
	}
	if m.ID != a.newest {
		all, _, err := a.segments(ctx, m)
		if err != nil {
			return err
		}
		if lost := all.Missing(has); !lost.IsEmpty() {
			a.lose(lost, time.Time{})
		}
	}
	// What an earlier backup has stays part of this history: a copy of an older state is none of it.
	a.newest, a.newestHas = m.ID, a.newestHas.Union(c.had)
	return nil
}

// gaps finds out what is missing in the archive: among the segments, and then at their end, which is in no binary log any
// more. After a gap among the segments nothing can be restored.
func (a *archiver) gaps(ctx context.Context, purged gtid.Set) error {
	if err := a.look(ctx); err != nil {
		return err
	}
	lost := purged.Minus(a.have)
	if lost.IsEmpty() {
		return nil
	}
	a.have = a.have.Union(lost)
	a.lose(lost, a.last)
	// The newest backup may have it.
	a.looked = time.Time{}
	return a.look(ctx)
}

// compare compares what is archived with what the server had executed at a time before. If it is there, and the server
// is still the primary, all is archived that was committed by then: a server that is written to all the time is always
// ahead of its archive.
func (a *archiver) compare(ctx context.Context) error {
	if time.Since(a.compared) < a.pace.Compare {
		return nil
	}
	a.compared = time.Now()
	r, err := a.ask(ctx)
	if err != nil {
		return err
	}
	if a.sample != nil && !r.Executed.Contains(a.sample.Executed) {
		// It is of a server that had more than the one that leads now, and what it had more is given up.
		a.sample = nil
	}
	if a.sample == nil {
		a.sample, a.sampled, a.vouched = r, time.Now(), false
	}
	a.vouched = a.vouched || time.Since(a.sampled) >= a.pace.Hold
	switch r = a.sample; {
	case !a.have.Contains(r.Executed) && time.Since(a.sampled) > a.pace.Stall && time.Since(a.received) > a.pace.Stall:
		return backup.Errorf(backup.SourceUnreachable, "the server has executed more, and no binary logs were received of it for %s", a.pace.Stall)
	case !a.have.Contains(r.Executed), !a.vouched:
		a.state.Behind = a.state.Behind || time.Since(a.sampled) > a.pace.Behind
		a.say(a.state)
		return nil
	}
	a.sample = nil
	if err := a.look(ctx); err != nil {
		a.stop(err)
		return nil
	}
	if err := a.hasBackups(ctx); err != nil {
		return err
	}
	if a.cuts || r.Time.Sub(a.recorded) >= recordEvery {
		if err := a.record(ctx, *r); err != nil {
			a.stop(err)
			return nil
		}
		a.cuts, a.recorded = false, r.Time
	}
	a.state.Until, a.state.Problem, a.state.Behind, a.stopped = r.Time, "", false, ""
	a.say(a.state)
	return nil
}

// hasBackups returns an error if a backup that was completed after the server had begun to lead has what it lacks: the next
// session decides about that.
func (a *archiver) hasBackups(ctx context.Context) error {
	executed, err := within(ctx, a.source.Executed)
	if err != nil {
		return err
	}
	if extra := a.newestHas.Minus(executed); !extra.IsEmpty() {
		return backup.Errorf(backup.SourceUnreachable, "the primary lacks transactions that a backup of its data has, %d in all", extra.Len())
	}
	return nil
}

// stop passes on why it is not known how far the archive is, although segments get into it.
func (a *archiver) stop(err error) {
	a.trouble(err)
	a.stopped = a.state.Problem
}

// ask asks the server what it has executed, and returns an error unless it is the primary after that.
func (a *archiver) ask(ctx context.Context) (*segment.Reached, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	// The server says when it has committed a transaction, so its clock counts.
	now, err := a.source.Now(ctx)
	if err != nil {
		return nil, err
	}
	executed, err := a.source.Executed(ctx)
	if err != nil {
		return nil, err
	}
	return &segment.Reached{System: a.system, Time: now, Executed: executed}, a.source.IsPrimary(ctx)
}

// reachedPrefix is the beginning of the names of records of what is archived.
const reachedPrefix = "reached-"

// reachedObject returns the name of the newest record of what is archived of a database: others may lie in the same
// place.
func reachedObject(system string) string { return reachedPrefix + system + ".json" }

// record has the store say how far the archive is.
func (a *archiver) record(ctx context.Context, r segment.Reached) error {
	var err error
	if r.Seal, err = a.seal.Sign(r, reachedObject(r.System)); err != nil {
		return err
	}
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot encode how far the archive is: %w", err)
	}
	return a.store.Write(ctx, reachedObject(r.System), append(content, '\n'))
}
