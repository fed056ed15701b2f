package main

import (
	"context"
	"fmt"
	"slices"
)

// side of a comparison: what it is called, and one measurement of it in
// transactions a second.
type side struct {
	name    string
	measure func(context.Context) (float64, error)
}

// result of a comparison: the medians of both sides.
type result struct{ base, other float64 }

// ratio of the other side to the base.
func (r result) ratio() float64 { return r.other / r.base }

// compare both sides in turns, so that what the machine does meanwhile hits
// both.
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

// median of some numbers, 0 of none.
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
