package main

import (
	"context"
	"fmt"
	"slices"
)

// side is one side of a comparison: its name, and a function that measures it once, in
// transactions per second.
type side struct {
	name    string
	measure func(context.Context) (float64, error)
}

// result holds the medians of both sides in transactions per second.
type result struct{ base, other float64 }

// ratio returns the ratio of the other side to the base.
func (r result) ratio() float64 { return r.other / r.base }

// compare measures both sides in turns, so that other load on the machine affects both.
func compare(ctx context.Context, rounds int, base, other side) (result, error) {
	var tps [2][]float64
	for range rounds {
		for i, s := range []side{base, other} {
			t, err := s.measure(ctx)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", s.name, err)
			}
			tps[i] = append(tps[i], t)
		}
	}
	return result{base: median(tps[0]), other: median(tps[1])}, nil
}

// median returns the median, or 0 if there are no numbers.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
