package podfailure

import (
	"regexp"
	"slices"
	"strings"
)

var (
	nodesAvailable = regexp.MustCompile(`^\d+/\d+ nodes are available:?\s*`)
	preemption     = regexp.MustCompile(`\.?\s*(no new claims to deallocate, )?preemption: .*$`)
	counted        = regexp.MustCompile(`(^|, )\d+ `)
)

// scheduling returns the scheduler's reasons without the numbers of nodes.
func scheduling(message string) string {
	message = nodesAvailable.ReplaceAllString(message, "")
	message = preemption.ReplaceAllString(message, "")
	message = counted.ReplaceAllString(message, "$1")
	parts := strings.Split(strings.TrimSuffix(strings.TrimSpace(message), "."), ", ")
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}
