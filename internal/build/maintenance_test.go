package build

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWindow(t *testing.T) {
	type want struct {
		Open bool
		Next string
		Text string
	}
	weekend := appsv1.Maintenance{Days: []appsv1.Weekday{"Saturday", "Sunday"}, Start: "02:30", Hours: new(int32(3)), TimeZone: "Europe/Paris"}
	const weekends = "Saturday, Sunday 02:30 for 3 h, Europe/Paris"
	nightly := appsv1.Maintenance{Start: "23:00"}
	cases := map[string]struct {
		reason string
		of     appsv1.Maintenance
		now    string
		want   want
	}{
		"Weekday":   {reason: "It opens on Saturday, by the clock of its zone.", of: weekend, now: "2026-11-26T12:00:00Z", want: want{Next: "2026-11-28T01:30:00Z", Text: weekends}},
		"Open":      {reason: "It is open from its start.", of: weekend, now: "2026-11-28T01:30:00Z", want: want{Open: true, Next: "2026-11-29T01:30:00Z", Text: weekends}},
		"Over":      {reason: "It is closed once its hours are over.", of: weekend, now: "2026-11-28T04:30:00Z", want: want{Next: "2026-11-29T01:30:00Z", Text: weekends}},
		"Midnight":  {reason: "It may go on after midnight.", of: nightly, now: "2026-11-27T02:59:59Z", want: want{Open: true, Next: "2026-11-27T23:00:00Z", Text: "each day 23:00 for 4 h, UTC"}},
		"LastDay":   {reason: "After the last day comes the first one of the next week.", of: weekend, now: "2026-11-29T12:00:00Z", want: want{Next: "2026-12-05T01:30:00Z", Text: weekends}},
		"Short":     {reason: "Where the clock goes forward at 02:00, 02:30 is an hour later.", of: weekend, now: "2026-03-28T12:00:00Z", want: want{Next: "2026-03-29T01:30:00Z", Text: weekends}},
		"SummerDay": {reason: "In summer it opens an hour earlier by UTC.", of: weekend, now: "2026-07-01T12:00:00Z", want: want{Next: "2026-07-04T00:30:00Z", Text: weekends}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := Window(&tc.of)
			if err != nil {
				t.Fatal(err)
			}
			now := at(t, tc.now)
			got := want{Open: w.Open(now), Next: w.Next(now).UTC().Format(time.RFC3339), Text: w.String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWindowRefused(t *testing.T) {
	for want, m := range map[string]appsv1.Maintenance{
		`start must be hours and minutes like 02:30, is "2 am"`:           {Start: "2 am"},
		`start must be hours and minutes like 02:30, is ""`:               {},
		`hours must be 1 to 24, is 25`:                                    {Start: "02:00", Hours: new(int32(25))},
		`days must be names like Saturday, is "Sat"`:                      {Start: "02:00", Days: []appsv1.Weekday{"Sat"}},
		`timeZone "Mars/Base" is not known: use a name like Europe/Paris`: {Start: "02:00", TimeZone: "Mars/Base"},
		`timeZone "Local" is not known: use a name like Europe/Paris`:     {Start: "02:00", TimeZone: "Local"},
		`timeZone "../passwd" is not known: use a name like Europe/Paris`: {Start: "02:00", TimeZone: "../passwd"},
	} {
		if _, err := Window(&m); err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestPropertyWindow: the window is open at its next start, which is within a week.
func TestPropertyWindow(t *testing.T) {
	zones := []string{"", "Europe/Paris", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "America/St_Johns"}
	days := []appsv1.Weekday{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}
	rapid.Check(t, func(t *rapid.T) {
		m := &appsv1.Maintenance{
			Days:  rapid.SliceOfNDistinct(rapid.SampledFrom(days), 0, 7, rapid.ID[appsv1.Weekday]).Draw(t, "days"),
			Start: time.Date(2026, 1, 1, 0, rapid.IntRange(0, 24*60-1).Draw(t, "minute"), 0, 0, time.UTC).Format("15:04"),
			Hours: new(rapid.Int32Range(1, 24).Draw(t, "hours")), TimeZone: rapid.SampledFrom(zones).Draw(t, "zone"),
		}
		w, err := Window(m)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1700000000, 1900000000).Draw(t, "now"), 0)
		next := w.Next(now)
		if !next.After(now) || next.Sub(now) > 8*24*time.Hour || !w.Open(next) {
			t.Fatalf("from %s it opens next at %s, where it is open: %t", now, next, w.Open(next))
		}
	})
}
