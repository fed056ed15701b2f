package supervisor

import (
	"testing"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestDemoted: when a server that was the primary is not any more.
func TestDemoted(t *testing.T) {
	leads, serves := group.Member{Server: "a", State: group.Online, Primary: true}, group.Member{Server: "b", State: group.Online}
	for name, c := range map[string]struct {
		reason string
		in     group.Report
		want   bool
	}{
		"Succeeded":  {reason: "Another member leads.", in: group.Report{Running: true, State: group.Online, Members: []group.Member{leads, serves}}, want: true},
		"Primary":    {reason: "It leads.", in: group.Report{Running: true, State: group.Online, Primary: true, Members: []group.Member{leads, serves}}},
		"Unknown":    {reason: "No member leads at the moment.", in: group.Report{Running: true, State: group.Online, Members: []group.Member{serves}}},
		"Lost":       {reason: "The one that led does not answer the others.", in: group.Report{Running: true, State: group.Online, Members: []group.Member{{Server: "a", State: group.Unreachable, Primary: true}, serves}}},
		"Left":       {reason: "It is in no group.", in: group.Report{Running: true, State: group.Offline}, want: true},
		"Failed":     {reason: "It was expelled.", in: group.Report{Running: true, State: group.Failed}, want: true},
		"Silent":     {reason: "It may take writes all the same.", in: group.Report{}},
		"Recovering": {reason: "It joins beside another primary.", in: group.Report{Running: true, State: group.Recovering, Members: []group.Member{leads}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := demoted(&c.in); got != c.want {
				t.Errorf("%s\ndemoted(): got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}
