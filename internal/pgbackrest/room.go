package pgbackrest

import (
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// IsFull reports whether a set depends on no other.
func (s Set) IsFull() bool { return !strings.Contains(s.Label, "_") }

// Chain returns the label of the full backup that a set begins with: its own, or that of the one
// it depends on.
func (s Set) Chain() string { return chain(s.Label) }

func chain(label string) string {
	full, _, _ := strings.Cut(label, "_")
	return full
}

// Of returns the sets of a stanza.
func Of(stanza string, sets []Set) []Set {
	return slices.DeleteFunc(slices.Clone(sets), func(s Set) bool { return s.Stanza != stanza })
}

// fullSlack is how early a full backup may be: the runs of a schedule are never exactly as far
// apart as planned.
const fullSlack = 12 * time.Hour

// On returns the sets that a restore along a lineage can begin with: other sets may be of another
// branch.
func On(lineage wal.Lineage, sets []Set) []Set {
	var on []Set
	for _, s := range sets {
		if end, ok := wal.Parse(s.WALStop); ok && lineage.Reads(end) {
			on = append(on, s)
		}
	}
	return on
}

// FullDue reports whether the next backup of a stanza has to be a full one, of which there is one
// every so many days.
func FullDue(sets []Set, days int, now time.Time) bool {
	for _, s := range slices.Backward(sets) {
		if s.IsFull() {
			return now.Sub(s.Start) >= time.Duration(days)*24*time.Hour-fullSlack
		}
	}
	return true
}

// Spare returns the label of the full backup of a stanza that may expire first for lack of room,
// with those that depend on it, or "". Broken are the labels of broken backups, which are not
// among the sets. A broken one on which no good one depends is first, then the oldest. The newest
// backup is kept, with those that it depends on. So is the newest verified one, with all that are
// between, so that it can be restored whatever happens to younger ones.
func Spare(sets []Set, broken []string) string {
	if len(sets) == 0 {
		return ""
	}
	newest, verified := sets[len(sets)-1].Chain(), ""
	good := map[string]bool{}
	for _, s := range sets {
		good[s.Chain()] = true
		if !s.Verified.IsZero() {
			verified = s.Chain()
		}
	}
	for _, label := range broken {
		if full := chain(label); !good[full] {
			return full
		}
	}
	if oldest := sets[0].Chain(); oldest != newest && oldest != verified {
		return oldest
	}
	return ""
}

// A Need is what a backup, and the WAL after it, are expected to take, in bytes.
type Need struct{ Backup, Log int64 }

// Room returns the room that is needed for all of it, with a tenth more for the backup, as data
// grows.
func (n Need) Room() int64 { return n.Backup + n.Backup/10 + n.Log }

// Expect returns the need of the next backup of a stanza, by what those before took. For WAL it
// is what was archived since the newest one began, or at that rate for a day if that is longer
// ago.
func Expect(sets []Set, full bool, archived int64, now time.Time) Need {
	if len(sets) == 0 {
		return Need{}
	}
	newest := sets[len(sets)-1]
	n := Need{Log: archived}
	if since := now.Sub(newest.Start); since > 24*time.Hour {
		n.Log = int64(float64(archived) * float64(24*time.Hour) / float64(since))
	}
	if full {
		n.Backup = expectFull(sets, newest.Data)
		return n
	}
	for _, s := range sets[max(0, len(sets)-recent):] {
		if !s.IsFull() {
			n.Backup = max(n.Backup, s.Size)
		}
	}
	return n
}

// recent is how many of the last backups determine the expected size of an incremental one.
const recent = 7

// expectFull returns the size of the last full backup, scaled by how much the data has grown
// since.
func expectFull(sets []Set, data int64) int64 {
	for _, s := range slices.Backward(sets) {
		if s.IsFull() && s.Data > 0 {
			return int64(float64(s.Size) * float64(data) / float64(s.Data))
		}
	}
	return 0
}
