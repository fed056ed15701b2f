package command

import (
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup/run"
	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestArchiveReport: a report is written if it says something new, and again if it could not be.
func TestArchiveReport(t *testing.T) {
	lost, err := gtid.Parse("8d1e5c5a-3c3f-4b39-9d56-3f3a1b0c7e11:5-6")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(d time.Duration) *time.Time { return new(began.Add(d)) }
	gap := func(to *time.Time) []instance.Gap {
		return []instance.Gap{{First: lost.String(), Last: lost.String(), From: after(time.Minute), To: to}}
	}
	var written []instance.Archive
	var refuse error
	r := archiveReport{log: slog.New(slog.DiscardHandler), write: func(content string) error {
		if refuse != nil {
			return refuse
		}
		var a instance.Archive
		err := json.Unmarshal([]byte(content), &a)
		if a.Reported == nil {
			t.Errorf("a report has no time: %s", content)
		}
		a.Reported = nil
		written = append(written, a)
		return err
	}}
	const away = "the store is away: port 48122"
	for _, step := range []struct {
		reason string
		at     time.Duration
		now    run.Archived
		refuse error
		want   *instance.Archive
	}{
		{reason: "The API server is away.", now: run.Archived{BackedUp: true, Until: began}, refuse: errors.New("away")},
		{reason: "It is back.", now: run.Archived{BackedUp: true, Until: began}, want: &instance.Archive{BackedUp: true, Recoverable: after(0)}},
		{reason: "Time alone is reported in steps.", at: time.Minute, now: run.Archived{BackedUp: true, Until: *after(time.Minute)}},
		{reason: "A step.", at: 5 * time.Minute, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute)}, want: &instance.Archive{BackedUp: true, Recoverable: after(5 * time.Minute)}},
		{reason: "The data lacks what is archived.", at: 5*time.Minute + time.Second, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute), Parted: true}, want: &instance.Archive{BackedUp: true, Parted: true, Recoverable: after(5 * time.Minute)}},
		{reason: "It has another identifier.", at: 5*time.Minute + 2*time.Second, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute)}, want: &instance.Archive{BackedUp: true, Recoverable: after(5 * time.Minute)}},
		{reason: "A problem may pass.", at: 6 * time.Minute, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute), Problem: away}},
		{
			reason: "It does not.", at: 7 * time.Minute, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute), Problem: away},
			want: &instance.Archive{BackedUp: true, Recoverable: after(5 * time.Minute), Failing: away, Since: after(5 * time.Minute)},
		},
		{reason: "Its words alone change.", at: 7*time.Minute + time.Second, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute), Problem: "the store is away: port 48124"}},
		{
			reason: "It is over, and the archive far behind.", at: 7*time.Minute + 2*time.Second, now: run.Archived{BackedUp: true, Until: *after(5 * time.Minute), Behind: true},
			want: &instance.Archive{BackedUp: true, Recoverable: after(5 * time.Minute), Failing: behind, Since: after(5 * time.Minute), Archiving: true},
		},
		{
			reason: "Something is lost.", at: 8 * time.Minute, now: run.Archived{BackedUp: true, Until: *after(8 * time.Minute), Missing: lost, Before: *after(time.Minute)},
			want: &instance.Archive{BackedUp: true, Recoverable: after(time.Minute), Gaps: gap(nil)},
		},
		{
			reason: "A backup has it.", at: 9 * time.Minute, now: run.Archived{BackedUp: true, Until: *after(9 * time.Minute), Missing: lost, Before: *after(time.Minute), Ended: *after(8 * time.Minute)},
			want: &instance.Archive{BackedUp: true, Recoverable: after(9 * time.Minute), Gaps: gap(after(8 * time.Minute))},
		},
		{
			reason: "It is far behind, and lives.", at: 14 * time.Minute, now: run.Archived{BackedUp: true, Until: *after(9 * time.Minute), Missing: lost, Before: *after(time.Minute), Ended: *after(8 * time.Minute)},
			want: &instance.Archive{BackedUp: true, Recoverable: after(9 * time.Minute), Gaps: gap(after(8 * time.Minute))},
		},
		{
			reason: "Another history has begun, and has no backup.", at: 15 * time.Minute, now: run.Archived{System: "two", Until: *after(15 * time.Minute)},
			want: &instance.Archive{System: "two"},
		},
		{
			reason: "It has one.", at: 16 * time.Minute, now: run.Archived{System: "two", BackedUp: true, Until: *after(16 * time.Minute)},
			want: &instance.Archive{System: "two", BackedUp: true, Recoverable: after(16 * time.Minute)},
		},
	} {
		written, refuse = nil, step.refuse
		r.say(step.now, began.Add(step.at))
		var want []instance.Archive
		if step.want != nil {
			want = append(want, *step.want)
		}
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("%s\nwhat is written: -want, +got:\n%s", step.reason, diff)
		}
	}
}
