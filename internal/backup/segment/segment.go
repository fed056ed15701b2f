package segment

import (
	"cmp"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/gtid"
)

// A Segment is a part of the binary logs of a server: some transactions, in the order in which they were executed.
type Segment struct {
	// ID of the segment in the store.
	ID string

	// System is the identifier of the database, as that of a backup.
	System string

	// Transactions are those of the segment, and Before are those that were executed before them.
	Transactions, Before gtid.Set

	// First and Last are the earliest and the latest time at which one of them was committed.
	First, Last time.Time
}

// Of returns the segment that a manifest describes.
func Of(m *backup.Manifest) (Segment, error) {
	if m.Method != backup.BinaryLog {
		return Segment{}, backup.Errorf(backup.BackupCorrupt, "%s is no part of a binary log: its method is %q", m.ID, m.Method)
	}
	s := Segment{ID: m.ID, System: m.System, First: m.Started, Last: m.Finished}
	var err error
	if s.Transactions, err = gtid.Parse(m.Position); err != nil {
		return Segment{}, backup.Errorf(backup.BackupCorrupt, "the manifest of %s: %w", m.ID, err)
	}
	if s.Before, err = gtid.Parse(m.Before); err != nil {
		return Segment{}, backup.Errorf(backup.BackupCorrupt, "the manifest of %s: %w", m.ID, err)
	}
	return s, nil
}

// Describe writes the segment into a manifest.
func (s Segment) Describe(m *backup.Manifest) {
	m.Method, m.ID, m.System, m.Started, m.Finished = backup.BinaryLog, s.ID, s.System, s.First, s.Last
	m.Position, m.Before = s.Transactions.String(), s.Before.String()
}

// Reached records that by a time the primary had executed some transactions and no others. The time is zero in the
// first record of an archive, which has not begun yet.
type Reached struct {
	System   string    `json:"system"`
	Time     time.Time `json:"time"`
	Executed gtid.Set  `json:"executed"`

	// Seal authenticates all other fields, if backups are encrypted.
	Seal string `json:"seal,omitempty"`
}

// An Archive is what is known of the segments of one database.
type Archive struct {
	// Segments are in no order that matters.
	Segments []Segment

	// Damaged are segments of which the manifest is authentic, and the content is not there whole.
	Damaged []Segment

	// Reached is the newest record, or nil.
	Reached *Reached
}

// Has returns all transactions that are in a segment.
func (a Archive) Has() gtid.Set {
	var out gtid.Set
	for _, s := range a.Segments {
		out = out.Union(s.Transactions)
	}
	return out
}

// Of returns the part of the archive that is of one database.
func (a Archive) Of(system string) Archive {
	others := func(s Segment) bool { return s.System != system }
	out := Archive{Segments: slices.DeleteFunc(slices.Clone(a.Segments), others), Damaged: slices.DeleteFunc(slices.Clone(a.Damaged), others)}
	if a.Reached != nil && a.Reached.System == system {
		out.Reached = a.Reached
	}
	return out
}

// Expired returns the segments of which a restore needs none: each backup that is kept has all of their transactions,
// given those of each. Without a backup none is expired.
func (a Archive) Expired(kept []gtid.Set) []Segment {
	if len(kept) == 0 {
		return nil
	}
	var out []Segment
	for _, s := range a.Segments {
		if !slices.ContainsFunc(kept, func(has gtid.Set) bool { return !has.Contains(s.Transactions) }) {
			out = append(out, s)
		}
	}
	return out
}

// stamp writes a time in a message.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// A Chain is what is applied to a backup.
type Chain struct {
	// Segments are applied in this order. Transactions that there are already are skipped, whenever they were
	// committed.
	Segments []Segment

	// Until is the time of the last transaction that is applied, or zero. Nothing is applied after the first one that
	// was committed later: times are those of the primaries' clocks, and do not always grow.
	Until time.Time

	// Reaches are the transactions that there are afterwards, if none was committed after Until.
	Reaches gtid.Set

	// Incomplete is the error if all segments were applied, and no transaction was found that was committed after
	// Until. It is nil if that is enough.
	Incomplete error
}

// Chain returns which segments restore a backup, which has a set of transactions, to a time, or to the end of the
// archive if the time is zero. The error has the reason ArchiveGap if transactions in between are missing, and
// BackupMissing if the archive ends before that time.
func (a Archive) Chain(has gtid.Set, until time.Time) (Chain, error) {
	c := Chain{Until: until, Reaches: has}
	left := sorted(a.Segments)
	for more := true; more; {
		more = false
		var rest []Segment
		for _, s := range left {
			switch {
			case !c.Reaches.Contains(s.Before):
				rest = append(rest, s)
			case c.Reaches.Contains(s.Transactions):
			case !until.IsZero() && s.First.After(until):
				// All that is before it is there, and it is not wanted. Nor is what comes after it, whatever its
				// times are: the clocks of two primaries may differ.
				return c, nil
			default:
				c.Segments, c.Reaches, more = append(c.Segments, s), c.Reaches.Union(s.Transactions), true
			}
		}
		left = rest
	}
	err := a.complete(c, left)
	if err != nil && !until.IsZero() && slices.ContainsFunc(c.Segments, func(s Segment) bool { return s.Last.After(until) }) {
		c.Incomplete, err = err, nil
	}
	return c, err
}

// complete returns an error unless a chain that leaves segments over has all that was committed until its time.
func (a Archive) complete(c Chain, left []Segment) error {
	r := a.Reached
	switch {
	case r != nil && !c.Until.IsZero() && !r.Time.Before(c.Until) && c.Reaches.Contains(r.Executed):
		return nil
	case len(left) > 0:
		return a.gap(c, left)
	case r != nil && !c.Reaches.Contains(r.Executed):
		lost := r.Executed.Minus(c.Reaches)
		if r.Time.IsZero() {
			return backup.Errorf(backup.ArchiveGap, "the archive of binary logs began after the backup: %d transactions before it are in no segment: %s. %s", lost.Len(), lost, a.newest(c))
		}
		return backup.Errorf(backup.ArchiveGap, "the archive of binary logs has lost its end: %d transactions were in it at %s, and are in no segment: %s. %s", lost.Len(), stamp(r.Time), lost, a.newest(c))
	}
	if r == nil && c.Until.IsZero() && len(a.Segments) > 0 {
		return backup.Errorf(backup.ArchiveGap, "the record of how far the archive of binary logs gets is missing or not authentic, so that its end may be lost. %s", a.newest(c))
	}
	for _, s := range a.Damaged {
		if !c.Reaches.Contains(s.Transactions) {
			return backup.Errorf(backup.ArchiveGap, "the archive of binary logs has a gap: segment %s with %d transactions from %s on is damaged: %s. %s", s.ID, s.Transactions.Len(), stamp(s.First), s.Transactions, a.newest(c))
		}
	}
	if c.Until.IsZero() {
		return nil
	}
	end := a.end(c)
	if end.IsZero() {
		return backup.Errorf(backup.BackupMissing, "no binary logs are archived after the backup, so that it alone can be restored, by its id, and not %s", stamp(c.Until))
	}
	return backup.Errorf(backup.BackupMissing, "the archive of binary logs ends at %s, before %s: that is the newest time that can be restored to", stamp(end), stamp(c.Until))
}

// Missing returns the transactions that are in no segment, and without which not all segments can be applied to a backup
// with a set of transactions.
func (a Archive) Missing(has gtid.Set) gtid.Set {
	var before gtid.Set
	for _, s := range a.Segments {
		has, before = has.Union(s.Transactions), before.Union(s.Before)
	}
	return before.Minus(has)
}

// gap returns the error of a chain that leaves segments over, of which the first is the next one.
func (a Archive) gap(c Chain, left []Segment) error {
	missing := Archive{Segments: left}.Missing(c.Reaches)
	return backup.Errorf(backup.ArchiveGap, "the archive of binary logs has a gap: %d transactions before %s are in no segment: %s. %s", missing.Len(), stamp(left[0].First), missing, a.newest(c))
}

// newest describes the newest time before a gap, or the end of the archive, that can be restored to.
func (a Archive) newest(c Chain) string {
	end := a.end(c)
	if end.IsZero() {
		return "The backup alone can be restored, by its id"
	}
	return "The newest time before that can be restored to is " + stamp(end)
}

// end returns until when the archive has all transactions, given all segments that could be applied, or zero if it has
// none after the backup.
func (a Archive) end(c Chain) time.Time {
	var out time.Time
	for _, s := range c.Segments {
		if s.Last.After(out) {
			out = s.Last
		}
	}
	if r := a.Reached; r != nil && r.Time.After(out) && c.Reaches.Contains(r.Executed) {
		out = r.Time
	}
	return out
}

// sorted returns segments in the order in which they were committed.
func sorted(of []Segment) []Segment {
	out := slices.Clone(of)
	slices.SortFunc(out, func(a, b Segment) int { return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.ID, b.ID)) })
	return out
}
