package manager

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

func TestArchived(t *testing.T) {
	const current = "000000020000000100000009"
	cases := map[string]struct {
		reason, segment, last string
		first                 string
		want                  bool
	}{
		"Nothing":  {reason: "Before the first there is none.", segment: "000000010000000000000001", last: ""},
		"Same":     {reason: "The last one is in.", segment: "000000010000000000000003", last: "000000010000000000000003", want: true},
		"Before":   {reason: "So are those before.", segment: "000000010000000000000002", last: "000000010000000000000003", want: true},
		"After":    {reason: "The next one is not.", segment: "000000010000000000000004", last: "000000010000000000000003"},
		"Timeline": {reason: "A failover counts on.", segment: "000000020000000000000003", last: "000000010000000000000003", want: true},
		"File":     {reason: "The next file of a thousand is later.", segment: "000000010000000100000000", last: "0000000100000000000000FF"},
		"Backup":   {reason: "What marks a backup has the name of its segment.", segment: "000000010000000000000003", last: "000000010000000000000003.00000028.backup", want: true},
		"History":  {reason: "A timeline's history is no segment.", segment: "000000010000000000000003", last: "00000002.history"},
		"Partial":  {reason: "What a timeline left unfinished is no segment.", segment: "000000020000000000000003", last: "000000010000000000000003.partial"},
		"Waits":    {reason: "One that waits is not in, though a later one is.", segment: "000000010000000000000003", last: "000000010000000000000005", first: "0000000000000003"},
		"Hole":     {reason: "Nor is what comes after one that waits.", segment: "000000010000000000000004", last: "000000010000000000000005", first: "0000000000000003"},
		"Earlier":  {reason: "What comes before one that waits is.", segment: "000000010000000000000002", last: "000000010000000000000005", first: "0000000000000003", want: true},
		"Current":  {reason: "The segment that is written is not in, though that of the timeline before is.", segment: current, last: "000000010000000100000009"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := archived(tc.segment, postgres.Archiver{Last: tc.last, First: tc.first, Current: current}); got != tc.want {
				t.Errorf("%s\narchived(%q, %q): got %t", tc.reason, tc.segment, tc.last, got)
			}
		})
	}
}

func TestJudgeArchive(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	ptr := func(at time.Time) *time.Time { return &at }
	const earlier, segment = "000000010000000000000001", "000000010000000000000003"
	cases := map[string]struct {
		reason  string
		stats   postgres.Archiver
		beats   []beat
		before  *instance.Archive
		failing time.Time
		failure string
		whole   whole
		want    *instance.Archive
	}{
		"First": {
			reason: "What was committed in a segment can be restored once that is in the archive.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			beats:  []beat{{segment: segment, at: ago(time.Minute)}, {segment: "000000010000000000000004", at: now}},
			want:   &instance.Archive{Recoverable: ptr(ago(time.Minute)), RecoverableSegment: segment},
			whole:  whole{compared: true},
		},
		"NotCompared": {
			reason: "What a primary before wrote may be missing.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			beats:  []beat{{segment: segment, at: ago(time.Minute)}},
			before: &instance.Archive{Recoverable: ptr(ago(time.Hour))},
			want:   &instance.Archive{Recoverable: ptr(ago(time.Hour))},
		},
		"Gap": {
			reason: "Nothing beyond a gap can be restored.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			beats:  []beat{{segment: segment, at: ago(time.Minute)}},
			before: &instance.Archive{Recoverable: ptr(ago(time.Hour)), RecoverableSegment: earlier},
			whole:  whole{compared: true, backedUp: true, gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002"}}},
			want:   &instance.Archive{Recoverable: ptr(ago(time.Hour)), RecoverableSegment: earlier, BackedUp: true, Gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002"}}},
		},
		"OlderGap": {
			reason: "What could be restored before a gap was found cannot if it is beyond the gap.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			before: &instance.Archive{Recoverable: ptr(ago(time.Hour)), RecoverableSegment: segment},
			whole:  whole{compared: true, backedUp: true, gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002"}}},
			want:   &instance.Archive{BackedUp: true, Gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002"}}},
		},
		"GapOfUnknown": {
			reason: "A report of an older version does not show that it is before the gap.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			before: &instance.Archive{Recoverable: ptr(ago(time.Hour))},
			whole:  whole{compared: true, backedUp: true, gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002"}}},
			want:   &instance.Archive{BackedUp: true, Gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002"}}},
		},
		"Ended": {
			reason: "Beyond the backup that ends a gap it can.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			beats:  []beat{{segment: segment, at: ago(time.Minute)}},
			before: &instance.Archive{Recoverable: ptr(ago(time.Hour))},
			whole:  whole{compared: true, gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002", To: ptr(ago(2 * time.Minute))}}},
			want:   &instance.Archive{Recoverable: ptr(ago(time.Minute)), RecoverableSegment: segment, Gaps: []instance.Gap{{First: "000000010000000000000002", Last: "000000010000000000000002", To: ptr(ago(2 * time.Minute))}}},
		},
		"Step": {
			reason: "Not every beat is told, since each runs the function.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second)},
			beats:  []beat{{segment: segment, at: ago(time.Minute)}},
			before: &instance.Archive{Recoverable: ptr(ago(3 * time.Minute))},
			whole:  whole{compared: true},
			want:   &instance.Archive{Recoverable: ptr(ago(3 * time.Minute))},
		},
		"Hiccup": {
			reason: "What fails for a moment is tried again.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Minute), FailedAt: ago(time.Second)},
			want:   &instance.Archive{},
		},
		"Failing": {
			reason:  "What goes on failing is told, with the tool's words.",
			stats:   postgres.Archiver{Last: segment, LastAt: ago(time.Hour), FailedAt: ago(time.Second)},
			failing: ago(2 * time.Minute),
			failure: "no such bucket",
			want:    &instance.Archive{Failing: "no such bucket", Since: ptr(ago(time.Hour))},
		},
		"Full": {
			reason:  "A volume without room is distinguished from other failures, since a backup makes room.",
			stats:   postgres.Archiver{Last: segment, LastAt: ago(time.Hour), FailedAt: ago(time.Second)},
			failing: ago(2 * time.Minute),
			failure: "cannot archive WAL: unable to write '/x': [28] No space left on device",
			want:    &instance.Archive{Failing: "cannot archive WAL: unable to write '/x': [28] No space left on device", Full: true, Since: ptr(ago(time.Hour))},
		},
		"Node": {
			reason:  "A node without room is not the volume of the backups.",
			stats:   postgres.Archiver{Last: segment, LastAt: ago(time.Hour), FailedAt: ago(time.Second)},
			failing: ago(2 * time.Minute),
			failure: "cannot archive WAL: unable to write '/tmp/pgbackrest/spool/x': [28] No space left on device",
			want:    &instance.Archive{Failing: "cannot archive WAL: unable to write '/tmp/pgbackrest/spool/x': [28] No space left on device", Since: ptr(ago(time.Hour))},
		},
		"Slow": {
			reason:  "A command that has not given up yet is not waited for, when it has said something.",
			stats:   postgres.Archiver{Last: segment, LastAt: ago(time.Hour), Waiting: 1, Oldest: ago(time.Minute)},
			failure: "the store is slow",
			want:    &instance.Archive{Failing: "the store is slow", Since: ptr(ago(time.Hour))},
		},
		"Soon": {
			reason:  "It may still succeed.",
			stats:   postgres.Archiver{Last: segment, LastAt: ago(time.Hour), Waiting: 1, Oldest: ago(30 * time.Second)},
			failure: "the store is slow",
			want:    &instance.Archive{},
		},
		"Again": {
			reason:  "Success ends it.",
			stats:   postgres.Archiver{Last: segment, LastAt: ago(time.Second), FailedAt: ago(time.Minute)},
			failing: ago(2 * time.Minute),
			want:    &instance.Archive{},
		},
		"Stuck": {
			reason: "A command that never ends does not fail either.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Hour), Waiting: 3, Oldest: ago(6 * time.Minute)},
			want:   &instance.Archive{Failing: "WAL waits to be archived for more than five minutes", Since: ptr(ago(time.Hour))},
		},
		"Busy": {
			reason: "That some wait is nothing.",
			stats:  postgres.Archiver{Last: segment, LastAt: ago(time.Second), Waiting: 30, Oldest: ago(time.Minute)},
			want:   &instance.Archive{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &archiving{
				Manager: &Manager{}, failure: func() string { return tc.failure },
				beats: tc.beats, failing: tc.failing, state: tc.before, whole: tc.whole,
			}
			tc.stats.Now, tc.stats.Current = now, "000000010000000000000009"
			if diff := cmp.Diff(tc.want, a.judge(tc.stats)); diff != "" {
				t.Errorf("%s\njudge(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSetUp: the repository is set up once for each configuration, and after a failure again after
// createAgain.
func TestSetUp(t *testing.T) {
	tries, fault := 0, errors.New("cannot set up the repository: no such bucket")
	a := &archiving{
		Manager: &Manager{Exchange: &exchange.Exchange{Notes: exchange.NewNotes(slog.New(slog.DiscardHandler))}},
		create:  func(context.Context) error { tries++; return fault },
	}
	now := time.Now()
	step := func(what string, wantTries int, wantProblem string) {
		t.Helper()
		problem := a.setUp(t.Context(), now)
		a.publishArchive(&instance.Archive{}, "7", "7-place", problem)
		if tries != wantTries || problem != wantProblem {
			t.Errorf("%s: want %d tries and %q, got %d, %q", what, wantTries, wantProblem, tries, problem)
		}
	}
	broken := fault
	fault = archive.ErrNone
	step("in a pod that is older than backups", 1, "")
	tries, fault, now = 0, broken, now.Add(createAgain)
	step("first", 1, fault.Error())
	step("at once again", 1, fault.Error())
	now = now.Add(createAgain)
	step("after a while", 2, fault.Error())
	fault = nil
	now = now.Add(createAgain)
	step("when it works", 3, "")
	now = now.Add(time.Hour)
	step("later", 3, "")
}

// TestReportRecoverable: a new primary keeps the time reported before until it has found its own,
// and reports none if it has lost its repository, or if it has found a gap before that time.
func TestReportRecoverable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	now := at.Add(time.Hour)
	gap := instance.Gap{First: "000000010000000000000002", Last: "000000010000000000000003"}
	ended := gap
	ended.To = &at
	earlier := instance.Archive{Recoverable: &at, RecoverableSegment: "000000010000000000000001", BackedUp: true}
	later := instance.Archive{Recoverable: &at, RecoverableSegment: "000000010000000000000005", BackedUp: true}
	cases := map[string]struct {
		reason        string
		before, state instance.Archive
		want          *time.Time
	}{
		"Known":   {reason: "What it has found counts.", before: earlier, state: instance.Archive{Recoverable: &now, BackedUp: true}, want: &now},
		"Unknown": {reason: "Until then what the primary before reported holds.", before: earlier, state: instance.Archive{BackedUp: true}, want: &at},
		"Gap":     {reason: "Up to a gap there is a backup to restore.", before: earlier, state: instance.Archive{BackedUp: true, Gaps: []instance.Gap{gap}}, want: &at},
		"Beyond":  {reason: "No restore gets beyond a gap.", before: later, state: instance.Archive{BackedUp: true, Gaps: []instance.Gap{gap}}},
		"Ended":   {reason: "One does from the backup that ends it.", before: later, state: instance.Archive{BackedUp: true, Gaps: []instance.Gap{ended}}, want: &at},
		"Lost":    {reason: "Without a backup nothing is recoverable.", before: earlier, state: instance.Archive{Gaps: []instance.Gap{gap}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &primary{archiving: &archiving{state: &tc.state, system: "1"}}
			var next instance.Cluster
			p.archived(&next, instance.Cluster{Archive: &tc.before})
			if diff := cmp.Diff(tc.want, next.Archive.Recoverable); diff != "" {
				t.Errorf("%s\narchived(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
