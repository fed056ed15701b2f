package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTPSOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		out    string
		want   float64
		fails  bool
	}{
		"Persistent": {reason: "As pgbench 15 to 18 print it", out: "number of failed transactions: 0 (0.000%)\nlatency average = 0.3 ms\ntps = 1234.5 (without initial connection time)\n", want: 1234.5},
		"Reconnects": {reason: "As it prints it with a connection each", out: "tps = 99.25 (including reconnection times)\n", want: 99.25},
		"Failed":     {reason: "What failed must not look fast", out: "number of failed transactions: 3 (0.1%)\ntps = 5000.0 (x)\n", fails: true},
		"Nothing":    {reason: "No figure is no 0", out: "", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tpsOf(tc.out)
			if (err != nil) != tc.fails {
				t.Fatalf("\n%s\ntpsOf(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\ntpsOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
