package harness

import (
	"fmt"
	"slices"
	"strings"
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
	for _, m := range all {
		fmt.Fprintf(&b, "\n  %.2fs to %.2fs, %d times: %s", m.first, m.last, m.times, m.error)
	}
	return b.String()
}
