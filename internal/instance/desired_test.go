package instance_test

import (
	"math"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
)

func TestOrdinal(t *testing.T) {
	cases := map[string]struct {
		reason string
		pod    string
		want   int32
	}{
		"First":    {reason: "They are counted from zero.", pod: "orders-postgresql-0", want: 0},
		"Eleventh": {reason: "It may have two digits.", pod: "orders-postgresql-10", want: 10},
		"Digits":   {reason: "Only the last number counts.", pod: "orders-2-postgresql-1", want: 1},
		"Round":    {reason: "It is what a pod's name was made of.", pod: instance.Pod("orders-postgresql", 7), want: 7},
		"Word":     {reason: "One without a number is beyond all.", pod: "orders-postgresql", want: math.MaxInt32},
		"Hyphen":   {reason: "So is one that ends before it.", pod: "orders-postgresql-", want: math.MaxInt32},
		"Huge":     {reason: "And one that no StatefulSet counts to.", pod: "orders-postgresql-4294967296", want: math.MaxInt32},
		"Empty":    {reason: "And none at all.", pod: "", want: math.MaxInt32},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := instance.Ordinal(tc.pod); got != tc.want {
				t.Errorf("%s\nOrdinal(%q): want %d, got %d", tc.reason, tc.pod, tc.want, got)
			}
		})
	}
}
