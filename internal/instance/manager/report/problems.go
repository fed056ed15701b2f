package report

import (
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
)

// Sort sorts problems and removes duplicates.
func Sort(problems []instance.Problem) []instance.Problem {
	slices.SortFunc(problems, func(a, b instance.Problem) int {
		if c := strings.Compare(string(a.Subject), string(b.Subject)); c != 0 {
			return c
		}
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(problems)
}

// New returns the problems that were not there before.
func New(before, after []instance.Problem) []instance.Problem {
	return slices.DeleteFunc(slices.Clone(after), func(p instance.Problem) bool { return slices.Contains(before, p) })
}

// Obsolete returns the keys of members whose pods are not among those given.
func Obsolete(keys, pods []string) []string {
	var obsolete []string
	for _, k := range keys {
		if pod := instance.PodOf(k); pod != "" && !slices.Contains(pods, pod) {
			obsolete = append(obsolete, k)
		}
	}
	slices.Sort(obsolete)
	return obsolete
}
