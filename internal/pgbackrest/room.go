package pgbackrest

import (
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// IsFull tells whether a set depends on no other.
func (s Set) IsFull() bool { return !strings.Contains(s.Label, "_") }

// Chain is the label of the full backup that a set begins with: its own, or that
// of the one it depends on.
func (s Set) Chain() string { return chain(s.Label) }

func chain(label string) string {
	full, _, _ := strings.Cut(label, "_")
	return full
}

// Of one stanza.
func Of(stanza string, sets []Set) []Set {
	return slices.DeleteFunc(slices.Clone(sets), func(s Set) bool { return s.Stanza != stanza })
}

// fullSlack is by how much a full backup may come early: runs of a schedule are
// never quite as far apart as it says.
const fullSlack = 12 * time.Hour

// On are the sets that a restore along a lineage can begin with: another branch may have
// been backed up meanwhile.
func On(lineage wal.Lineage, sets []Set) []Set {
	var on []Set
	for _, s := range sets {
		if end, ok := wal.Parse(s.WALStop); ok && lineage.Reads(end) {
			on = append(on, s)
		}
	}
	return on
}

// FullDue tells whether the next backup of a stanza is a full one, of which there
// is one each so many days.
func FullDue(sets []Set, days int, now time.Time) bool {
	for _, s := range slices.Backward(sets) {
		if s.IsFull() {
			return now.Sub(s.Start) >= time.Duration(days)*24*time.Hour-fullSlack
		}
	}
	return true
}

// Spare is the full backup of a stanza that may expire first, with those that
// depend on it, because room is short; or "". Labels of broken backups are of those
// that are no Sets. What depends on nothing else goes first, then the oldest. The
// newest backup stays with those it depends on, and the newest that was verified,
// with all that lies between: whatever happens to younger ones, that one can be
// restored.
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

// Need is what a backup is expected to take, and the WAL after it, in bytes.
type Need struct{ Backup, Log int64 }

// Room that has to be there for all of it. Data grows, so there is a tenth more.
func (n Need) Room() int64 { return n.Backup + n.Backup/10 + n.Log }

// Expect of the next backup of a stanza what those before it took. The log is what
// was archived since the newest one began, at that rate for a day at most.
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

// recent backups tell how large the next one is.
const recent = 7

// expectFull is the last full backup's size, as much larger or smaller as the
// data is now.
func expectFull(sets []Set, data int64) int64 {
	for _, s := range slices.Backward(sets) {
		if s.IsFull() && s.Data > 0 {
			return int64(float64(s.Size) * float64(data) / float64(s.Data))
		}
	}
	return 0
}
