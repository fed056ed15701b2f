package segment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/gtid"
)

const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"

// set returns a set of transactions of one group, such as 1-3:7.
func set(t interface{ Fatal(args ...any) }, intervals string) gtid.Set {
	if intervals == "" {
		return gtid.Set{}
	}
	out, err := gtid.Parse(uuid + ":" + intervals)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// at returns a time: transaction n is committed n minutes after midnight.
func at(n int) time.Time { return time.Date(2026, 11, 28, 0, n, 0, 0, time.UTC) }

// of returns the segment of transactions from one to another, after some others.
func of(t interface{ Fatal(args ...any) }, from, to int, before string) Segment {
	return Segment{
		ID: fmt.Sprintf("%02d-%02d", from, to), System: "one", First: at(from), Last: at(to),
		Transactions: set(t, fmt.Sprintf("%d-%d", from, to)), Before: set(t, before),
	}
}

func TestChain(t *testing.T) {
	segments := []Segment{of(t, 7, 9, "1-6"), of(t, 1, 3, ""), of(t, 4, 6, "1-3")}
	reached := &Reached{System: "one", Time: at(20), Executed: set(t, "1-9")}
	gap := []Segment{of(t, 1, 3, ""), of(t, 7, 9, "1-6")}
	type want struct {
		IDs    []string
		Reason backup.Reason
		Says   string
	}
	cases := map[string]struct {
		reason  string
		archive Archive
		has     string
		until   time.Time
		before  int
		// unrecorded is true without even the first record.
		unrecorded bool
		want       want
	}{
		"End": {
			reason:  "All that is after the backup is applied, in its order.",
			archive: Archive{Segments: segments}, has: "1-2",
			want: want{IDs: []string{"01-03", "04-06", "07-09"}},
		},
		"Time": {
			reason:  "What was committed later is not needed.",
			archive: Archive{Segments: segments}, has: "1-3", until: at(5),
			want: want{IDs: []string{"04-06"}},
		},
		"Between": {
			reason:  "Nothing was committed between two segments.",
			archive: Archive{Segments: segments}, has: "1-3", until: at(6).Add(time.Second),
			want: want{IDs: []string{"04-06"}},
		},
		"NoArchive": {
			reason:  "There is no archive.",
			archive: Archive{}, has: "1-3", until: at(5),
			want: want{Reason: backup.BackupMissing, Says: "no binary logs are archived after the backup, so that it alone can be restored, by its id, and not 2026-11-28 00:05:00 UTC"},
		},
		"Nothing": {
			reason:  "The backup has all, and there is no archive.",
			archive: Archive{}, has: "1-3",
			want: want{},
		},
		"BegunLater": {
			reason:  "Binary logs were deleted before the archive began.",
			archive: Archive{Segments: []Segment{of(t, 4, 6, "")}, Reached: &Reached{System: "one", Executed: set(t, "1-3")}}, has: "1-2",
			want: want{IDs: []string{"04-06"}, Reason: backup.ArchiveGap, Says: "the archive of binary logs began after the backup: transactions before it are in no segment, 1 in all: " + uuid + ":3"},
		},
		"NoRecord": {
			reason:  "It was removed, as the end of the archive may have been.",
			archive: Archive{Segments: segments}, has: "1-3", unrecorded: true,
			want: want{IDs: []string{"04-06", "07-09"}, Reason: backup.ArchiveGap, Says: "the record of how far the archive of binary logs gets is missing or not authentic, so that its end may be lost. The newest time before that can be restored to is 2026-11-28 00:09:00 UTC"},
		},
		"AllGone": {
			reason:  "With the record all segments were removed.",
			archive: Archive{Expected: true}, has: "1-3", unrecorded: true,
			want: want{Reason: backup.ArchiveGap, Says: "the record of how far the archive of binary logs gets is missing or not authentic, so that its end may be lost. The backup alone can be restored, by its id"},
		},
		"NoRecordNeeded": {
			reason:  "What comes after the time is there.",
			archive: Archive{Segments: segments}, has: "1-3", unrecorded: true, until: at(5),
			want: want{IDs: []string{"04-06"}},
		},
		"Quiet": {
			reason:  "Nothing was committed until the time, as the newest record says.",
			archive: Archive{Segments: segments, Reached: reached}, has: "1-9", until: at(15),
			want: want{},
		},
		"Later": {
			reason:  "The archive says nothing about that time.",
			archive: Archive{Segments: segments, Reached: reached}, has: "1-3", until: at(21),
			want: want{IDs: []string{"04-06", "07-09"}, Reason: backup.BackupMissing, Says: "the archive of binary logs ends at 2026-11-28 00:20:00 UTC, before 2026-11-28 00:21:00 UTC: that is the newest time that can be restored to"},
		},
		"AfterTheLast": {
			reason:  "There may have been transactions which are not archived yet.",
			archive: Archive{Segments: segments}, has: "1-3", until: at(10),
			want: want{IDs: []string{"04-06", "07-09"}, Reason: backup.BackupMissing, Says: "ends at 2026-11-28 00:09:00 UTC"},
		},
		"Unknown": {
			reason:  "The record is of transactions that are not archived.",
			archive: Archive{Segments: segments, Reached: &Reached{System: "one", Time: at(20), Executed: set(t, "1-12")}}, has: "1-3", until: at(15),
			want: want{IDs: []string{"04-06", "07-09"}, Reason: backup.ArchiveGap, Says: "transactions that were in it at 2026-11-28 00:20:00 UTC are in no segment, 3 in all"},
		},
		"Gap": {
			reason:  "A segment is missing.",
			archive: Archive{Segments: gap}, has: "1-2",
			want: want{IDs: []string{"01-03"}, Reason: backup.ArchiveGap, Says: "transactions before 2026-11-28 00:07:00 UTC are in no segment, 3 in all: " + uuid + ":4-6. The newest time before that can be restored to is 2026-11-28 00:03:00 UTC"},
		},
		"GapBefore": {
			reason:  "What is missing comes later than what is wanted.",
			archive: Archive{Segments: gap}, has: "1-1", until: at(2),
			want: want{IDs: []string{"01-03"}},
		},
		"GapAfter": {
			reason:  "The backup has what is missing.",
			archive: Archive{Segments: gap}, has: "1-6",
			want: want{IDs: []string{"07-09"}},
		},
		"GapAtOnce": {
			reason:  "What is missing comes right after the backup.",
			archive: Archive{Segments: gap}, has: "1-4",
			want: want{Reason: backup.ArchiveGap, Says: "has a gap: transactions before 2026-11-28 00:07:00 UTC are in no segment, 2 in all: " + uuid + ":5-6. The backup alone can be restored, by its id"},
		},
		"InTheGap": {
			reason:  "What was committed until that time is not known.",
			archive: Archive{Segments: gap}, has: "1-3", until: at(5),
			want: want{Reason: backup.ArchiveGap, Says: "The backup alone can be restored, by its id"},
		},
		"EndLost": {
			reason:  "The record is of transactions that were archived, and are not there any more.",
			archive: Archive{Segments: segments[1:], Reached: reached}, has: "1-2",
			want: want{IDs: []string{"01-03", "04-06"}, Reason: backup.ArchiveGap, Says: "the archive of binary logs has lost its end: transactions that were in it at 2026-11-28 00:20:00 UTC are in no segment, 3 in all: " + uuid + ":7-9. The newest time before that can be restored to is 2026-11-28 00:06:00 UTC"},
		},
		"EndDamaged": {
			reason:  "The last segment is not what was written.",
			archive: Archive{Segments: segments[1:], Damaged: segments[:1]}, has: "1-2",
			want: want{IDs: []string{"01-03", "04-06"}, Reason: backup.ArchiveGap, Says: "segment 07-09 is damaged, which has transactions from 2026-11-28 00:07:00 UTC on, 3 in all: "},
		},
		"DamagedElsewhere": {
			reason:  "Another one has the same.",
			archive: Archive{Segments: segments, Damaged: []Segment{of(t, 2, 5, "1-1")}}, has: "1-2",
			want: want{IDs: []string{"01-03", "04-06", "07-09"}},
		},
		"Before": {
			reason:  "Nothing after the segment with the transaction is applied.",
			archive: Archive{Segments: segments}, has: "1-2", before: 5,
			want: want{IDs: []string{"01-03", "04-06"}},
		},
		"BeforeInBackup": {
			reason:  "What the backup has cannot be left out.",
			archive: Archive{Segments: segments}, has: "1-5", before: 5,
			want: want{Reason: backup.BackupMissing, Says: "the backup has transaction " + uuid + ":5 already"},
		},
		"BeforeBeyond": {
			reason:  "A transaction that is not known may be a mistake of whoever wrote it.",
			archive: Archive{Segments: segments}, has: "1-2", before: 10,
			want: want{IDs: []string{"01-03", "04-06", "07-09"}, Reason: backup.BackupMissing, Says: "transaction " + uuid + ":10 is not in the archive of binary logs, which reaches to 2026-11-28 00:09:00 UTC. If it is newer it is archived within minutes, and this is tried again. If not, it is no transaction of this database"},
		},
		"BeforeAfterGap": {
			reason:  "What is missing would be missing.",
			archive: Archive{Segments: gap}, has: "1-2", before: 8,
			want: want{IDs: []string{"01-03"}, Reason: backup.ArchiveGap, Says: "transactions before 2026-11-28 00:07:00 UTC are in no segment, 3 in all"},
		},
		"BeforeGap": {
			reason:  "What is missing comes later.",
			archive: Archive{Segments: gap}, has: "1-1", before: 3,
			want: want{IDs: []string{"01-03"}},
		},
		"Twice": {
			reason:  "Two programs have archived the same.",
			archive: Archive{Segments: []Segment{of(t, 1, 5, ""), of(t, 4, 6, "1-3"), of(t, 4, 9, "1-3")}}, has: "",
			want: want{IDs: []string{"01-05", "04-06", "04-09"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.archive.Reached == nil && !tc.unrecorded {
				tc.archive.Reached = &Reached{System: "one"}
			}
			to := Target{Time: tc.until}
			if tc.before != 0 {
				to.Before = set(t, strconv.Itoa(tc.before))
			}
			c, err := tc.archive.Chain(set(t, tc.has), to)
			got := want{Reason: backup.ReasonOf(err), Says: tc.want.Says}
			for _, s := range c.Segments {
				got.IDs = append(got.IDs, s.ID)
			}
			if err != nil && !strings.Contains(err.Error(), tc.want.Says) {
				got.Says = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nChain(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChainAlways: whatever was archived, by whom, what of it was lost, and whatever clocks say, a restore has all
// transactions up to one, the next of which was committed after the time, or fails.
func TestChainAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "transactions")
		numbers := func(from, to int) gtid.Set {
			if from > to {
				return gtid.Set{}
			}
			return set(t, fmt.Sprintf("%d-%d", from, to))
		}
		// Clocks of primaries differ.
		committed := make([]time.Time, n+1)
		skewed, skew := rapid.Bool().Draw(t, "skewed"), 0
		for i := 1; i <= n; i++ {
			if skewed && rapid.IntRange(0, 5).Draw(t, "another primary") == 0 {
				skew = rapid.IntRange(-4, 4).Draw(t, "skew")
			}
			committed[i] = at(i + skew)
		}
		a := Archive{}
		for range rapid.IntRange(0, 4).Draw(t, "programs") {
			// Each goes on from what it knows, which may be old, or has a gap.
			for from := rapid.IntRange(1, n).Draw(t, "from"); from <= n; {
				to := min(n, from+rapid.IntRange(0, 9).Draw(t, "length"))
				s := of(t, from, to, "")
				s.Before, s.ID = numbers(1, from-1), fmt.Sprintf("%s-%d", s.ID, len(a.Segments))
				s.First, s.Last = slices.MinFunc(committed[from:to+1], time.Time.Compare), slices.MaxFunc(committed[from:to+1], time.Time.Compare)
				switch rapid.IntRange(0, 9).Draw(t, "fate") {
				case 0:
				case 1:
					a.Damaged = append(a.Damaged, s)
				default:
					a.Segments = append(a.Segments, s)
				}
				from = to + 1
				if rapid.IntRange(0, 9).Draw(t, "gap") == 0 {
					from += rapid.IntRange(1, 5).Draw(t, "width")
				}
			}
		}
		a.Segments = rapid.Permutation(a.Segments).Draw(t, "order")
		by := 0
		a.Reached = &Reached{System: "one"}
		if !skewed && rapid.Bool().Draw(t, "recorded") {
			by = rapid.IntRange(1, n).Draw(t, "by")
			a.Reached = &Reached{System: "one", Time: at(by), Executed: numbers(1, by)}
		}
		base := rapid.IntRange(0, n).Draw(t, "base")
		var until time.Time
		if rapid.Bool().Draw(t, "to a time") {
			// A backup is never newer than the time.
			until = at(rapid.IntRange(base, n+2).Draw(t, "until"))
		}

		to, before := Target{Time: until}, 0
		if until.IsZero() && rapid.Bool().Draw(t, "to a transaction") {
			before = rapid.IntRange(1, n+1).Draw(t, "before")
			to.Before = numbers(before, before)
		}
		c, err := a.Chain(numbers(1, base), to)
		got, has, cut := base, numbers(1, base), false
		for _, s := range c.Segments {
			if !has.Contains(s.Before) {
				t.Fatalf("%s is applied to %s, and comes after %s", s.ID, has, s.Before)
			}
			has = has.Union(s.Transactions)
			for !cut && got < n && s.Transactions.Contains(numbers(got+1, got+1)) {
				if cut = to.Ends(numbers(got+1, got+1), committed[got+1]); !cut {
					got++
				}
			}
		}
		if !has.Equal(c.Reaches) {
			t.Errorf("segments lead to %s, and the chain says %s", has, c.Reaches)
		}
		if !cut {
			err = errors.Join(err, c.Incomplete)
		}
		if err != nil {
			return
		}
		if before > 0 {
			if got != before-1 || !cut {
				t.Errorf("a restore before transaction %d ends with %d, and succeeds", before, got)
			}
			return
		}
		if until.IsZero() {
			all := numbers(1, base).Union(a.Has())
			for _, s := range a.Damaged {
				all = all.Union(s.Transactions)
			}
			if all = all.Union(numbers(1, by)); !has.Equal(all) || !has.Equal(numbers(1, got)) {
				t.Errorf("a restore to the end has %s of %s", has, all)
			}
			return
		}
		known := by > 0 && !at(by).Before(until) && got >= by
		if !known && (got == n || !committed[got+1].After(until)) {
			t.Errorf("a restore until %s ends with %d of %d, and succeeds", until, got, n)
		}
	})
}

func TestExpired(t *testing.T) {
	a := Archive{Segments: []Segment{of(t, 1, 3, ""), of(t, 4, 6, "1-3"), of(t, 7, 9, "1-6"), of(t, 2, 3, "1-1")}}
	cases := map[string]struct {
		kept []string
		want []string
	}{
		"Some":     {kept: []string{"1-7"}, want: []string{"01-03", "02-03", "04-06"}},
		"None":     {kept: []string{"1-2"}},
		"Nothing":  {kept: []string{""}},
		"All":      {kept: []string{"1-20"}, want: []string{"01-03", "02-03", "04-06", "07-09"}},
		"Fewest":   {kept: []string{"1-20", "1-3", "1-7"}, want: []string{"01-03", "02-03"}},
		"NoBackup": {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			var kept []gtid.Set
			for _, has := range tc.kept {
				kept = append(kept, set(t, has))
			}
			for _, s := range a.Expired(kept) {
				got = append(got, s.ID)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Expired(): -want, +got:\n%s", diff)
			}
		})
	}
}

// TestDescribed: what a manifest says of a segment is read again.
func TestDescribed(t *testing.T) {
	s := of(t, 4, 6, "1-3:5")
	m := backup.Manifest{}
	s.Describe(&m)
	got, err := Of(&m)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got, cmp.Comparer(gtid.Set.Equal)); diff != "" {
		t.Errorf("Of(): -want, +got:\n%s", diff)
	}
	for _, wrong := range []backup.Manifest{{}, {Method: backup.BinaryLog, Position: "x"}, {Method: backup.BinaryLog, Before: "x"}} {
		if _, err := Of(&wrong); backup.ReasonOf(err) != backup.BackupCorrupt {
			t.Errorf("Of(%+v): want reason %s, got %v", wrong, backup.BackupCorrupt, err)
		}
	}
}
