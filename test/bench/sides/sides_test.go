package sides

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompare(t *testing.T) {
	var turns []string
	measured := func(name string, figures ...[]float64) Side {
		i := -1
		return Side{name, func(context.Context) ([]float64, error) {
			turns = append(turns, name)
			i++
			return figures[i], nil
		}}
	}
	a := measured("a", []float64{100, 1}, []float64{900, 3}, []float64{110, 9})
	b := measured("b", []float64{90, 2}, []float64{99, 2}, []float64{10, 2})
	got, err := Compare(t.Context(), 3, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "a", "b", "a", "b"}, turns); diff != "" {
		t.Errorf("\nBoth sides take turns\n-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(Result{[]float64{110, 3}, []float64{90, 2}}, got); diff != "" {
		t.Errorf("\nThe median of each figure counts, so that one outlier does not\n-want, +got:\n%s", diff)
	}
}

func TestCompareEven(t *testing.T) {
	i := 0.0
	next := Side{"next", func(context.Context) ([]float64, error) { i++; return []float64{i}, nil }}
	got, err := Compare(t.Context(), 2, next, next)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Result{[]float64{2}, []float64{3}}, got); diff != "" {
		t.Errorf("\nOf two the median is their mean\n-want, +got:\n%s", diff)
	}
}
