package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReplace: the tables of a release are replaced, and those of others and the text around them
// stay.
func TestReplace(t *testing.T) {
	section := func(release, words string) string { return heading(release) + "\n" + words + "\n" }
	v2 := section("v2", "new")
	cases := map[string]struct {
		reason, page, want, err string
	}{
		"First":    {reason: "At first there are none.", page: begin + end, want: begin + v2 + end},
		"Replaced": {reason: "The tables of the run before go.", page: "# Title\n\n" + begin + section("v2", "old") + end + "\nWords.\n", want: "# Title\n\n" + begin + v2 + end + "\nWords.\n"},
		"Newest":   {reason: "A new release comes first.", page: begin + section("v1", "old") + end, want: begin + v2 + "\n" + section("v1", "old") + end},
		"Between": {
			reason: "A release keeps its place.",
			page:   begin + section("v3", "newest") + "\n" + section("v2", "old") + "\n" + section("v1", "oldest") + end,
			want:   begin + section("v3", "newest") + "\n" + v2 + "\n" + section("v1", "oldest") + end,
		},
		"Longer":  {reason: "A release whose name begins with that of another one is not that one.", page: begin + section("v20", "old") + end, want: begin + v2 + "\n" + section("v20", "old") + end},
		"NoMarks": {reason: "A page without marks is left alone.", page: "# Title\n", err: "it has no lines"},
		"NoEnd":   {reason: "So is one whose tables do not end.", page: begin + "old\n", err: "it has no lines"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := replace([]byte(tc.page), "v2", v2)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nreplace(): want %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || err != nil {
				t.Errorf("%s\nreplace(): %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestMissed: the targets are those of the largest fleets.
func TestMissed(t *testing.T) {
	slow := []time.Duration{3 * time.Second}
	busy := usage{seconds: map[string]float64{"crossplane": 10, "function": 5}}
	cases := map[string]struct {
		reason string
		result result
		want   []string
	}{
		"Met": {reason: "All targets are met.", result: result{kind: webApps, n: 1000, ready: 8 * time.Minute, edits: []time.Duration{2 * time.Second}}},
		"WebApps": {
			reason: "Each target that is missed is named.",
			result: result{kind: webApps, n: 1000, ready: 9 * time.Minute, edits: slow, resting: busy},
			want: []string{
				"1000 WebApps: all Ready after 540 s, and not within 480 s",
				"1000 WebApps: 99 % of the edits of one are applied after 3s, and not within 2 s",
				"1000 WebApps: 12.5 % of a core at rest, and not 10 %",
			},
		},
		"Later": {
			reason: "Also once claims have rested for long.",
			result: result{kind: webApps, n: 1000, edits: []time.Duration{time.Second}, steady: &usage{seconds: map[string]float64{"crossplane": 66}}},
			want:   []string{"1000 WebApps: 11.0 % of a core once they have rested, and not 10 %"},
		},
		"Restarted": {
			reason: "The processor time of a program that was restarted is not known.",
			result: result{kind: shops, n: 10, resting: usage{others: []string{"function"}}, steady: &usage{others: []string{"provider"}}},
			want: []string{
				"10 EcommercePlatforms: function was restarted while they rested, so that its processor time is not known",
				"10 EcommercePlatforms: provider was restarted while they rested, so that its processor time is not known",
			},
		},
		"Stuck": {
			reason: "No fault leaves a claim stuck.",
			result: result{kind: webApps, n: 20, faults: []fault{{what: "Crossplane's pod is deleted"}, {what: "the provider's leader is deleted", stuck: 2}}},
			want:   []string{"20 WebApps: 2 are stuck after: the provider's leader is deleted"},
		},
		"Smaller": {reason: "Smaller fleets have no targets.", result: result{kind: webApps, n: 300, ready: time.Hour, edits: slow, resting: busy}},
		"Shops": {
			reason: "Shops have targets of their own.",
			result: result{kind: shops, n: 200, ready: 11 * time.Minute, edits: slow, restored: &restored{backups: 1000, took: []time.Duration{6 * time.Second, time.Second}}},
			want: []string{
				"200 EcommercePlatforms: all Ready after 660 s, and not within 600 s",
				"200 EcommercePlatforms: a Restore begins after 6.0 s, and not within 5 s",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, missed([]result{tc.result}, 2*time.Minute, 10*time.Minute)); diff != "" {
				t.Errorf("%s\nmissed(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i)*time.Second)
	}
	for p, want := range map[int]time.Duration{50: 51 * time.Second, 99: 100 * time.Second, 100: 100 * time.Second} {
		if got := percentile(all, p); got != want {
			t.Errorf("percentile(%d): want %v, got %v", p, want, got)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("percentile() of nothing: want 0, got %v", got)
	}
}
