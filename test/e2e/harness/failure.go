package harness

import (
	"fmt"
	"strings"
)

// shownFailures is how many failures an error shows.
const shownFailures = 20

// Failure is a write that failed, or an attempt to connect. At is seconds on the clock of the program that wrote.
type Failure struct {
	At     float64 `json:"at"`
	Writer string  `json:"writer"`
	Error  string  `json:"error"`
}

// Between returns the failures from one time to another, both included. Their times are relative to the first.
func Between(failures []Failure, from, to float64) []Failure {
	var out []Failure
	for _, f := range failures {
		if f.At >= from && f.At <= to {
			f.At -= from
			out = append(out, f)
		}
	}
	return out
}

// list formats failures, each on a line.
func list(failures []Failure) string {
	var b strings.Builder
	for _, f := range failures {
		fmt.Fprintf(&b, "\n  %.2fs %s: %s", f.At, f.Writer, f.Error)
	}
	return b.String()
}
