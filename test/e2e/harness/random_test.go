package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDraw(t *testing.T) {
	kinds := []string{"a", "b", "c"}
	drawn := Draw(7, 50, kinds...)
	if diff := cmp.Diff(drawn, Draw(7, 50, kinds...)); diff != "" {
		t.Errorf("Draw(...): the same seed draws something else: -first, +second:\n%s", diff)
	}
	if cmp.Equal(drawn, Draw(8, 50, kinds...)) {
		t.Error("Draw(...): another seed draws the same")
	}
	count := map[string]int{}
	for _, d := range drawn {
		count[d]++
	}
	if diff := cmp.Diff(map[string]int{"a": 17, "b": 17, "c": 16}, count); diff != "" {
		t.Errorf("Draw(...): each kind comes about equally often: -want, +got:\n%s", diff)
	}
}
