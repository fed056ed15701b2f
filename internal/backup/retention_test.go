package backup

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// entries returns backups named by their times. One whose name ends in ! was verified.
func entries(t *testing.T, times ...string) []Entry {
	t.Helper()
	var out []Entry
	for _, s := range times {
		e := Entry{ID: s}
		if s[len(s)-1] == '!' {
			s = s[:len(s)-1]
			e.Verified = new(at(t, s))
		}
		e.Time = at(t, s)
		out = append(out, e)
	}
	return out
}

func TestExpired(t *testing.T) {
	cases := map[string]struct {
		reason    string
		retention string
		keep      *backupv1.Keep
		zone      string
		now       string
		backups   []string
		want      []string
	}{
		"None": {
			reason: "Nothing expires where nothing is.",
			now:    "2026-05-01T00:00:00Z",
		},
		"Default": {
			reason:  "Without a word said backups stay for 30 days, to the second.",
			now:     "2026-05-31T02:00:00Z",
			backups: []string{"2026-05-01T02:00:00Z", "2026-05-01T02:00:01Z", "2026-05-30T02:00:00Z"},
			want:    []string{"2026-05-01T02:00:00Z"},
		},
		"NewestStays": {
			reason:    "The newest backup stays however old it is.",
			retention: "1d",
			now:       "2027-05-31T02:00:00Z",
			backups:   []string{"2026-05-01T02:00:00Z", "2026-05-02T02:00:00Z"},
			want:      []string{"2026-05-01T02:00:00Z"},
		},
		"VerifiedStays": {
			reason:    "The newest that was verified stays, older verified ones and newer unverified ones go.",
			retention: "1w",
			now:       "2027-05-31T02:00:00Z",
			backups:   []string{"2026-05-01T02:00:00Z!", "2026-05-02T02:00:00Z!", "2026-05-03T02:00:00Z", "2026-05-04T02:00:00Z"},
			want:      []string{"2026-05-01T02:00:00Z!", "2026-05-03T02:00:00Z"},
		},
		"Months": {
			reason:    "A month has 30 days.",
			retention: "1m",
			now:       "2026-03-31T00:00:00Z",
			backups:   []string{"2026-02-28T00:00:00Z", "2026-03-01T00:00:01Z", "2026-03-30T00:00:00Z"},
			want:      []string{"2026-02-28T00:00:00Z"},
		},
		"KeepOnly": {
			reason:  "With keep and no retention, age saves nothing.",
			keep:    &backupv1.Keep{Last: 2},
			now:     "2026-05-01T03:00:00Z",
			backups: []string{"2026-05-01T00:00:00Z", "2026-05-01T01:00:00Z", "2026-05-01T02:00:00Z"},
			want:    []string{"2026-05-01T00:00:00Z"},
		},
		"Daily": {
			reason:  "Of each day with a backup the newest stays; days without one do not count.",
			keep:    &backupv1.Keep{Daily: 2},
			now:     "2026-05-10T00:00:00Z",
			backups: []string{"2026-05-01T01:00:00Z", "2026-05-03T01:00:00Z", "2026-05-03T23:00:00Z", "2026-05-07T01:00:00Z", "2026-05-07T02:00:00Z"},
			want:    []string{"2026-05-01T01:00:00Z", "2026-05-03T01:00:00Z", "2026-05-07T01:00:00Z"},
		},
		"Zone": {
			reason:  "A day begins at midnight in the time zone.",
			keep:    &backupv1.Keep{Daily: 2},
			zone:    "Europe/Vienna",
			now:     "2026-05-10T00:00:00Z",
			backups: []string{"2026-05-06T21:00:00Z", "2026-05-06T23:00:00Z", "2026-05-07T21:00:00Z"},
			want:    []string{"2026-05-06T23:00:00Z"},
		},
		"DaylightSaving": {
			reason:  "The day of 25 hours is one day.",
			keep:    &backupv1.Keep{Daily: 2},
			zone:    "Europe/Vienna",
			now:     "2026-10-27T00:00:00Z",
			backups: []string{"2026-10-24T21:30:00Z", "2026-10-24T22:30:00Z", "2026-10-25T22:30:00Z", "2026-10-25T23:30:00Z"},
			want:    []string{"2026-10-24T21:30:00Z", "2026-10-24T22:30:00Z"},
		},
		"WeeksAndYears": {
			reason:  "A week begins on Monday and does not end with the year: 2026-12-28 and 2027-01-03 are one week.",
			keep:    &backupv1.Keep{Weekly: 2},
			now:     "2027-01-05T00:00:00Z",
			backups: []string{"2026-12-27T02:00:00Z", "2026-12-28T02:00:00Z", "2027-01-03T02:00:00Z", "2027-01-04T02:00:00Z"},
			want:    []string{"2026-12-27T02:00:00Z", "2026-12-28T02:00:00Z"},
		},
		"Monthly": {
			reason:  "A month is the calendar's here.",
			keep:    &backupv1.Keep{Monthly: 12},
			now:     "2026-03-02T00:00:00Z",
			backups: []string{"2025-02-28T02:00:00Z", "2026-01-01T02:00:00Z", "2026-01-31T02:00:00Z", "2026-02-01T02:00:00Z", "2026-03-01T02:00:00Z"},
			want:    []string{"2026-01-01T02:00:00Z"},
		},
		"Future": {
			reason:    "A backup from a clock ahead of ours does not expire.",
			retention: "1d",
			now:       "2026-01-01T00:00:00Z",
			backups:   []string{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := NewPolicy(tc.retention, tc.keep, tc.zone)
			if err != nil {
				t.Fatalf("NewPolicy(...): %v", err)
			}
			var got []string
			for _, e := range p.Expired(entries(t, tc.backups...), at(t, tc.now)) {
				got = append(got, e.ID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nExpired(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewPolicyRefuses(t *testing.T) {
	cases := map[string]struct {
		reason, retention, zone, want string
	}{
		"Word":     {reason: "A retention is a number with a unit.", retention: "forever", want: `cannot read the retention "forever": it has the form 30d, 4w or 12m`},
		"Unit":     {reason: "Hours are not offered.", retention: "12h", want: `cannot read the retention "12h": it has the form 30d, 4w or 12m`},
		"Negative": {reason: "An age is positive.", retention: "-1d", want: `cannot read the retention "-1d": it has the form 30d, 4w or 12m`},
		"Zone":     {reason: "A time zone has a known name.", zone: "Mars/Olympus", want: `cannot find the time zone "Mars/Olympus": unknown time zone Mars/Olympus`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewPolicy(tc.retention, nil, tc.zone)
			if err == nil || err.Error() != tc.want {
				t.Errorf("\n%s\nNewPolicy(...): want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestExpiredProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		var backups []Entry
		for i, hours := range rapid.SliceOfN(rapid.IntRange(-48, 24*500), 0, 60).Draw(t, "ages") {
			e := Entry{ID: fmt.Sprintf("%03d", i), Time: now.Add(-time.Duration(hours) * time.Hour)}
			if rapid.Bool().Draw(t, "verified") {
				e.Verified = &now
			}
			backups = append(backups, e)
		}
		count := rapid.Int32Range(0, 9)
		keep := &backupv1.Keep{Last: count.Draw(t, "last"), Daily: count.Draw(t, "daily"), Weekly: count.Draw(t, "weekly"), Monthly: count.Draw(t, "monthly")}
		p, err := NewPolicy(rapid.SampledFrom([]string{"", "1d", "2w", "1m", "99999999m"}).Draw(t, "retention"), keep,
			rapid.SampledFrom([]string{"", "Europe/Vienna", "Pacific/Kiritimati"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}

		expired := p.Expired(backups, now)
		gone := map[string]bool{}
		for _, e := range expired {
			gone[e.ID] = true
		}
		stays := slices.DeleteFunc(slices.Clone(backups), func(e Entry) bool { return gone[e.ID] })

		if newest := newestOf(backups, func(Entry) bool { return true }); newest != nil && gone[newest.ID] {
			t.Errorf("the newest backup expired: %v", newest)
		}
		if newest := newestOf(backups, func(e Entry) bool { return e.Verified != nil }); newest != nil && gone[newest.ID] {
			t.Errorf("the newest verified backup expired: %v", newest)
		}
		if len(gone) != len(expired) {
			t.Errorf("a backup expires twice: %v", expired)
		}
		if want := min(int(keep.Last), len(backups)); len(stays) < want {
			t.Errorf("%d stay, though the last %d are to be kept", len(stays), want)
		}
		if again := p.Expired(stays, now); len(again) > 0 {
			t.Errorf("a second pass expires more: %v", again)
		}
		for _, e := range stays {
			if gone[e.ID] {
				t.Errorf("%v both stays and goes", e)
			}
		}
	})
}

// newestOf returns the newest of those that match. Of two of the same time it is the one with the
// greater ID.
func newestOf(backups []Entry, match func(Entry) bool) *Entry {
	var out *Entry
	for i, e := range backups {
		if match(e) && (out == nil || e.Time.After(out.Time) || e.Time.Equal(out.Time) && e.ID > out.ID) {
			out = &backups[i]
		}
	}
	return out
}
