package harness

import (
	"testing"
	"time"
)

func TestBreakdown(t *testing.T) {
	start := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	after := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	cases := map[string]struct {
		reason string
		steps  []Moment
		want   string
	}{
		"Steps":   {"Each begins where the one before it ended", []Moment{{"lock", after(1)}, {"promotion", after(1.5)}}, "lock 1.00s, promotion 0.50s"},
		"Unknown": {"One that is not known counts for the next", []Moment{{"lock", time.Time{}}, {"promotion", after(1.5)}}, "promotion 1.50s"},
		"Earlier": {"One that ended before another began took no time", []Moment{{"lock", after(1)}, {"promotion", after(0.9)}, {"Service", after(2)}}, "lock 1.00s, promotion 0.00s, Service 1.00s"},
		"None":    {"Nothing is known", nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Breakdown(start, tc.steps...); got != tc.want {
				t.Errorf("%s: Breakdown(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for want, of := range map[time.Duration][]time.Duration{0: nil, 2: {1, 2, 9}, 5: {1, 5}} {
		if got := Median(of); got != want {
			t.Errorf("Median(%v): got %d, want %d", of, got, want)
		}
	}
}
