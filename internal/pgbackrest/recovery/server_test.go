package recovery

import (
	"testing"
	"time"
)

// TestPollPeriod: a recovery that takes long is asked rarely whether it has ended, since PostgreSQL
// logs each connection that it refuses, and a short one often.
func TestPollPeriod(t *testing.T) {
	cases := map[string]struct {
		reason     string
		took, want time.Duration
	}{
		"Begun": {reason: "It may end at any moment.", want: 200 * time.Millisecond},
		"Short": {reason: "Its end is noticed soon.", took: 2 * time.Second, want: 200 * time.Millisecond},
		"Long":  {reason: "A tenth of the time more is no matter.", took: 20 * time.Second, want: 2 * time.Second},
		"Hours": {reason: "Seconds are enough for any.", took: 3 * time.Hour, want: 5 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := pollPeriod(tc.took); got != tc.want {
				t.Errorf("%s\npollPeriod(%s): want %s, got %s", tc.reason, tc.took, tc.want, got)
			}
		})
	}
}
