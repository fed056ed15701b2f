package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func must(t testing.TB, spec, zone string) schedule {
	t.Helper()
	s, err := parseSchedule(spec, zone, false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func utc(t testing.TB, s string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPeriod(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]time.Duration{
		"* * * * *":      time.Minute,
		"*/5 * * * *":    5 * time.Minute,
		"0 2 * * *":      day,
		"@daily":         day,
		"0 2 * * 1-5":    3 * day,
		"*/5 9-17 * * 1": 6*day + 15*time.Hour + 5*time.Minute,
		"0 0 1 * *":      31 * day,
		"0 5 * * 0":      7 * day,
		"0 0 29 2 *":     8 * 366 * day, // from 2096 to 2104; 2100 is no leap year
		"0 0 31 2 *":     day,           // never
	}
	for spec, want := range cases {
		t.Run(spec, func(t *testing.T) {
			got := must(t, spec, "Europe/Vienna").period
			if spec == "0 0 29 2 *" {
				if got < 4*365*day {
					t.Errorf("a leap day is years apart, got %s", got)
				}
				return
			}
			if got != want {
				t.Errorf("want %s, got %s", want, got)
			}
		})
	}
}

func TestTooOld(t *testing.T) {
	cases := map[string]struct {
		reason     string
		spec, zone string
		last, now  string
		want       bool
		wantNext   string
	}{
		"Fresh":         {reason: "Last night's backup.", spec: "0 2 * * *", zone: "Etc/UTC", last: "2026-03-10T02:00:05Z", now: "2026-03-10T12:00:00Z", wantNext: "2026-03-11T02:00:00Z"},
		"OneMissed":     {reason: "One missed backup is not two periods.", spec: "0 2 * * *", zone: "Etc/UTC", last: "2026-03-10T02:00:05Z", now: "2026-03-12T01:59:59Z", wantNext: "2026-03-12T02:00:00Z"},
		"JustDue":       {reason: "The second one was due since.", spec: "0 2 * * *", zone: "Etc/UTC", last: "2026-03-10T02:00:05Z", now: "2026-03-12T02:00:00Z", want: true, wantNext: "2026-03-13T02:00:00Z"},
		"HundredMissed": {reason: "A hundred missed ones are as one.", spec: "0 2 * * *", zone: "Etc/UTC", last: "2026-03-10T02:00:05Z", now: "2026-06-18T12:00:00Z", want: true, wantNext: "2026-06-19T02:00:00Z"},
		"ManyMinutes":   {reason: "Of a schedule that runs each minute too.", spec: "* * * * *", zone: "Etc/UTC", last: "2025-03-10T02:00:05Z", now: "2026-06-18T12:00:00Z", want: true, wantNext: "2026-06-18T12:01:00Z"},
		"Weekend":       {reason: "Nothing is due on a weekend.", spec: "0 2 * * 1-5", zone: "Etc/UTC", last: "2026-03-06T02:00:05Z", now: "2026-03-09T01:00:00Z", wantNext: "2026-03-09T02:00:00Z"},
		"SpringForward": {reason: "Clocks skip 02:30 on 2026-03-29 in Vienna: nothing was due then.", spec: "30 2 * * *", zone: "Europe/Vienna", last: "2026-03-28T01:30:05Z", now: "2026-03-29T20:00:00Z", wantNext: "2026-03-30T00:30:00Z"},
		"AfterSpring":   {reason: "Nor is one missed too old the day after.", spec: "30 2 * * *", zone: "Europe/Vienna", last: "2026-03-28T01:30:05Z", now: "2026-03-30T12:00:00Z", wantNext: "2026-03-31T00:30:00Z"},
		"SpringTwo":     {reason: "Two missed ones are.", spec: "30 2 * * *", zone: "Europe/Vienna", last: "2026-03-28T01:30:05Z", now: "2026-03-31T12:00:00Z", want: true, wantNext: "2026-04-01T00:30:00Z"},
		"FallBack":      {reason: "02:30 comes twice on 2026-10-25 in Vienna.", spec: "30 2 * * *", zone: "Europe/Vienna", last: "2026-10-24T00:30:05Z", now: "2026-10-25T00:10:00Z", wantNext: "2026-10-25T00:30:00Z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := must(t, tc.spec, tc.zone)
			if got := s.tooOld(utc(t, tc.last), utc(t, tc.now)); got != tc.want {
				t.Errorf("%s\nwant too old %t, got %t", tc.reason, tc.want, got)
			}
			if diff := cmp.Diff(utc(t, tc.wantNext), s.next(utc(t, tc.now))); diff != "" {
				t.Errorf("%s\nnext: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTooOldNever: a backup that was made at each scheduled time is never too old, whatever clock
// changes there are.
func TestTooOldNever(t *testing.T) {
	specs := []string{"0 2 * * *", "30 2 * * *", "*/15 * * * *", "0 0 * * 0", "15 1 1 * *", "0 3 * * 1-5"}
	zones := []string{"Etc/UTC", "Europe/Vienna", "America/New_York", "Australia/Lord_Howe"}
	rapid.Check(t, func(t *rapid.T) {
		s, err := parseSchedule(rapid.SampledFrom(specs).Draw(t, "spec"), rapid.SampledFrom(zones).Draw(t, "zone"), false)
		if err != nil {
			t.Fatal(err)
		}
		now := epoch.Add(time.Duration(rapid.Int64Range(0, 3*365*24*3600).Draw(t, "seconds")) * time.Second)
		last, before := s.lastTwo(now)
		if last.IsZero() || before.IsZero() || last.After(now) || !before.Before(last) {
			t.Fatalf("%s: the last two times at %s are %s and %s", s.spec, now, last, before)
		}
		if s.tooOld(before, now) {
			t.Errorf("%s: a backup of %s is too old at %s", s.spec, before, now)
		}
		if !s.tooOld(before.Add(-time.Second), now) {
			t.Errorf("%s: two were due since %s, and at %s it is not too old", s.spec, before.Add(-time.Second), now)
		}
	})
}
