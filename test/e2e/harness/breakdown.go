package harness

import (
	"fmt"
	"strings"
	"time"
)

// Moment is the time at which a step ended, or the zero time if that is unknown.
type Moment struct {
	What string
	At   time.Time
}

// Breakdown describes how long each step took, in their order, beginning at from. The time of a
// step with an unknown end counts for the next one, and clocks that differ a little give no
// negative durations.
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

// Median returns the median of sorted durations, or 0 if there are none.
func Median(sorted []time.Duration) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}
