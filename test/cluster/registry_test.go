package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesOnNode(t *testing.T) {
	cases := map[string]struct {
		reason string
		tag    string
		want   []string
	}{
		"Ours": {
			reason: "What was pulled under either name is older than what was pushed.",
			tag:    registryAddress + "/shop:v1",
			want:   []string{registryAddress + "/shop:v1", exampleRegistry + "/shop:v1"},
		},
		"Another": {reason: "The node knows nothing of other registries.", tag: "registry.example.com/shop:v1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, namesOnNode(tc.tag)); diff != "" {
				t.Errorf("%s\nnamesOnNode(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
