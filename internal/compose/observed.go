package compose

import (
	"slices"
	"strings"
)

// ObservedComponents returns the names of the existing components that begin with a prefix, sorted.
// Components that are no longer declared are included.
func (c *Claim) ObservedComponents(prefix string) []string {
	var out []string
	for name := range c.observed {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
