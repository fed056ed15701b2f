package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequiredVersion(t *testing.T) {
	const mod = `module example.com/tools

go 1.26.0

require example.com/alone v1.0.0

require (
	example.com/direct v1.2.3
	example.com/direct/v2 v2.0.0-rc.1
	example.com/indirect v0.1.0 // indirect
)

replace example.com/replaced => example.com/other v9.0.0
`
	cases := map[string]struct {
		reason string
		module string
		want   string
	}{
		"Direct":   {reason: "A module in a block.", module: "example.com/direct", want: "v1.2.3"},
		"Major":    {reason: "A longer path is another module.", module: "example.com/direct/v2", want: "v2.0.0-rc.1"},
		"Alone":    {reason: "A line of its own.", module: "example.com/alone", want: "v1.0.0"},
		"Indirect": {reason: "A comment is no part of the version.", module: "example.com/indirect", want: "v0.1.0"},
		"Absent":   {reason: "A replacement is no requirement.", module: "example.com/replaced"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, requiredVersion(mod, tc.module)); diff != "" {
				t.Errorf("\n%s\nrequiredVersion(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestToolNames: no two groups build a program of the same name, because path would find only
// one.
func TestToolNames(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range toolNames() {
		if seen[name] {
			t.Errorf("two groups make %s", name)
		}
		seen[name] = true
	}
}
