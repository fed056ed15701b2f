package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReplace: the tables are replaced, and the text around them stays.
func TestReplace(t *testing.T) {
	cases := map[string]struct {
		reason, page, want, err string
	}{
		"Replaced": {reason: "The tables of the run before go.", page: "# Title\n\n" + begin + "old\n" + end + "\nWords.\n", want: "# Title\n\n" + begin + "new\n" + end + "\nWords.\n"},
		"First":    {reason: "At first there are none.", page: begin + end, want: begin + "new\n" + end},
		"NoMarks":  {reason: "A page without marks is left alone.", page: "# Title\n", err: "it has no lines"},
		"NoEnd":    {reason: "So is one whose tables do not end.", page: begin + "old\n", err: "it has no lines"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := replace([]byte(tc.page), "new\n")
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
