// Package sides compares two sides of a benchmark in turns, so that other load on the machine affects both.
package sides

import (
	"context"
	"fmt"
	"slices"
)

// Side is one side of a comparison: its name, and a function that measures it once. All measurements of a
// comparison return the same number of figures.
type Side struct {
	Name    string
	Measure func(context.Context) ([]float64, error)
}

// Result holds the medians of each figure of both sides.
type Result struct{ Base, Other []float64 }

// Ratio returns the ratio of the other side to the base in a figure.
func (r Result) Ratio(figure int) float64 { return r.Other[figure] / r.Base[figure] }

// Compare measures both sides in turns, so many times each.
func Compare(ctx context.Context, rounds int, base, other Side) (Result, error) {
	var measured [2][][]float64
	for range rounds {
		for i, s := range []Side{base, other} {
			figures, err := s.Measure(ctx)
			if err != nil {
				return Result{}, fmt.Errorf("%s: %w", s.Name, err)
			}
			measured[i] = append(measured[i], figures)
		}
	}
	return Result{Base: medians(measured[0]), Other: medians(measured[1])}, nil
}

// medians returns the median of each figure.
func medians(measured [][]float64) []float64 {
	var out []float64
	for figure := range measured[0] {
		var all []float64
		for _, m := range measured {
			all = append(all, m[figure])
		}
		slices.Sort(all)
		n := len(all)
		out = append(out, (all[(n-1)/2]+all[n/2])/2)
	}
	return out
}
