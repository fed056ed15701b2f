package converge

import (
	"maps"
	"slices"
	"strings"
)

// sortedKeys returns the sorted keys of one or more maps, each key once.
func sortedKeys[V any](in ...map[string]V) []string {
	out := make([]string, 0)
	for _, m := range in {
		out = append(out, slices.Collect(maps.Keys(m))...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func compareStrings(a, b string) int { return strings.Compare(a, b) }
