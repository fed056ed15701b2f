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

	// Expected is true if there was a record when the backup was made that is restored.
	Expected bool
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

// A Target is where a restore ends: at a time, or right before a transaction. The zero value is the end of the archive.
type Target struct {
	// Time is that of the last transaction that is wanted, or zero.
	Time time.Time

	// Before is the transaction that is not wanted, nor any that came after it, or the empty set.
	Before gtid.Set
}

// Ends reports whether a transaction, which was committed at a time, is the first one that is not wanted.
func (t Target) Ends(transaction gtid.Set, committed time.Time) bool {
	return !t.Time.IsZero() && committed.After(t.Time) || t.Before.Equal(transaction)
}

// A Chain is what is applied to a backup.
type Chain struct {
	// Segments are applied in this order. Transactions that there are already are skipped, whenever they were
	// committed.
	Segments []Segment

	// To is where the restore ends. Nothing is applied after the first transaction that is not wanted: times are those of
	// the primaries' clocks, and do not always grow.
	To Target

	// Reaches are the transactions that there are afterwards, if all are wanted.
	Reaches gtid.Set

	// Incomplete is the error if all segments were applied, and no transaction was found that is not wanted. It is nil
	// if that is enough.
	Incomplete error
}

// Chain returns which segments restore a backup, which has a set of transactions, to a target. The error has the reason
// ArchiveGap if transactions in between are missing, and BackupMissing if the archive ends before the target, or the
// backup has what is not wanted.
func (a Archive) Chain(has gtid.Set, to Target) (Chain, error) {
	c := Chain{To: to, Reaches: has}
	if !to.Before.IsEmpty() && has.Contains(to.Before) {
		return c, backup.Errorf(backup.BackupMissing, "the backup has transaction %s already", to.Before)
	}
	left := sorted(a.Segments)
	for more := true; more; {
		more = false
		var rest []Segment
		for _, s := range left {
			switch {
			case !c.Reaches.Contains(s.Before):
				rest = append(rest, s)
			case c.Reaches.Contains(s.Transactions):
			case !to.Time.IsZero() && s.First.After(to.Time):
				// All that is before it is there, and it is not wanted. Nor is what comes after it, whatever its
				// times are: the clocks of two primaries may differ.
				return c, nil
			default:
				c.Segments, c.Reaches, more = append(c.Segments, s), c.Reaches.Union(s.Transactions), true
				if !to.Before.IsEmpty() && s.Transactions.Contains(to.Before) {
					return c, nil
				}
			}
		}
		left = rest
	}
	err := a.complete(c, left)
	if err != nil && !to.Time.IsZero() && slices.ContainsFunc(c.Segments, func(s Segment) bool { return s.Last.After(to.Time) }) {
		c.Incomplete, err = err, nil
	}
	return c, err
}

// complete returns an error unless a chain that leaves segments over has all that is wanted.
func (a Archive) complete(c Chain, left []Segment) error {
	r := a.Reached
	switch {
	case r != nil && !c.To.Time.IsZero() && !r.Time.Before(c.To.Time) && c.Reaches.Contains(r.Executed):
		return nil
	case len(left) > 0:
		return a.gap(c, left)
	case r != nil && !c.Reaches.Contains(r.Executed):
		lost := r.Executed.Minus(c.Reaches)
		if r.Time.IsZero() {
			return backup.Errorf(backup.ArchiveGap, "the archive of binary logs began after the backup: transactions before it are in no segment, %d in all: %s. %s", lost.Len(), lost, a.newest(c))
		}
		return backup.Errorf(backup.ArchiveGap, "the archive of binary logs has lost its end: transactions that were in it at %s are in no segment, %d in all: %s. %s", stamp(r.Time), lost.Len(), lost, a.newest(c))
	}
	if r == nil && c.To.Time.IsZero() && c.To.Before.IsEmpty() && (a.Expected || len(a.Segments) > 0) {
		return backup.Errorf(backup.ArchiveGap, "the record of how far the archive of binary logs gets is missing or not authentic, so that its end may be lost. %s", a.newest(c))
	}
	for _, s := range a.Damaged {
		if !c.Reaches.Contains(s.Transactions) {
			return backup.Errorf(backup.ArchiveGap, "the archive of binary logs has a gap: segment %s is damaged, which has transactions from %s on, %d in all: %s. %s", s.ID, stamp(s.First), s.Transactions.Len(), s.Transactions, a.newest(c))
		}
	}
	end := a.end(c)
	switch {
	case !c.To.Before.IsEmpty():
		reaches := "which has nothing after the backup"
		if !end.IsZero() {
			reaches = "which reaches to " + stamp(end)
		}
		return backup.Errorf(backup.BackupMissing, "transaction %s is not in the archive of binary logs, %s. If it is newer it is archived within minutes, and this is tried again. If not, it is no transaction of this database", c.To.Before, reaches)
	case c.To.Time.IsZero():
		return nil
	case end.IsZero():
		return backup.Errorf(backup.BackupMissing, "no binary logs are archived after the backup, so that it alone can be restored, by its id, and not %s", stamp(c.To.Time))
	}
	return backup.Errorf(backup.BackupMissing, "the archive of binary logs ends at %s, before %s: that is the newest time that can be restored to", stamp(end), stamp(c.To.Time))
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
	return backup.Errorf(backup.ArchiveGap, "the archive of binary logs has a gap: transactions before %s are in no segment, %d in all: %s. %s", stamp(left[0].First), missing.Len(), missing, a.newest(c))
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
