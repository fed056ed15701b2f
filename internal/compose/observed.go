package compose

import (
	"slices"
	"strings"
)

// ObservedComponents names the components that exist and whose names begin with a
// prefix, sorted: those too that are declared no longer.
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
