package harness

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// shownErrors is how many different errors are shown.
	shownErrors = 20

	// lately is how many of the last failures are of interest, where it is not known since when.
	lately = 100
)

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

// latest returns the last failures.
func latest(failures []Failure) []Failure { return failures[max(0, len(failures)-lately):] }

// list formats failures: each error on a line, with how often it was met, and when first and last.
func list(failures []Failure) string {
	type met struct {
		error       string
		first, last float64
		times       int
	}
	var all []*met
	for _, f := range failures {
		i := slices.IndexFunc(all, func(m *met) bool { return m.error == f.Error })
		if i < 0 {
			i, all = len(all), append(all, &met{error: f.Error, first: f.At})
		}
		all[i].last = f.At
		all[i].times++
	}
	var b strings.Builder
	for _, m := range all[:min(len(all), shownErrors)] {
		fmt.Fprintf(&b, "\n  %.2fs to %.2fs, %d times: %s", m.first, m.last, m.times, m.error)
	}
	return b.String()
}
