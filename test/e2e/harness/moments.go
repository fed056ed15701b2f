package harness

import (
	"fmt"
	"strings"
	"time"
)

// Moment is when a step of something ended; zero where that is not known.
type Moment struct {
	What string
	At   time.Time
}

// Breakdown of the time from a moment on into steps, in their order. Steps that are
// not known count for the next one, and clocks that differ a little make no negative
// time.
func Breakdown(from time.Time, steps ...Moment) string {
	var parts []string
	for _, s := range steps {
		if s.At.IsZero() {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %.2fs", s.What, max(0, s.At.Sub(from).Seconds())))
		if s.At.After(from) {
			from = s.At
		}
	}
	return strings.Join(parts, ", ")
}

// Median of some durations, which are sorted; 0 of none.
func Median(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
