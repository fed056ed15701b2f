package harness

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWithin: an error about a gap has what writers met in it.
func TestWithin(t *testing.T) {
	failures := Between([]Failure{
		{At: 3.9, Writer: "uri", Error: "before"},
		{At: 4, Writer: "service-1", Error: "OperationalError: read-only"},
		{At: 5.25, Writer: "uri", Error: "TimeoutError: timed out"},
		{At: 5.5, Writer: "service-2", Error: "OperationalError: read-only"},
		{At: 6.1, Writer: "uri", Error: "after"},
	}, 4, 6)
	a := Account{Gap: 2 * time.Second, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Failures: failures}
	for name, c := range map[string]struct {
		target time.Duration
		want   string
	}{
		"Missed": {target: time.Second, want: "for 2.00s from 03:04:05.00 no write was acknowledged, 1s is the target. Writers met:\n" +
			"  0.00s to 1.50s, 2 times: OperationalError: read-only\n" +
			"  1.25s to 1.25s, 1 times: TimeoutError: timed out"},
		"Met":  {target: 2 * time.Second},
		"None": {target: 0},
	} {
		got := ""
		if err := a.Within(c.target); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: Within(%s): -want, +got:\n%s", name, c.target, diff)
		}
	}
}
