package supervisor

import (
	"testing"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestCount: how often in a row a server could not be brought up to date.
func TestCount(t *testing.T) {
	recovers := group.Report{Data: group.Whole, State: group.Recovering}
	fails := group.Report{Data: group.Whole, State: group.Failed}
	copies, copyFails := recovers, fails
	copies.Data, copyFails.Data = group.Copy, group.Copy
	for name, c := range map[string]struct {
		reason  string
		reports []group.Report
		want    int
	}{
		"Fails":  {reason: "Each attempt counts once.", reports: []group.Report{recovers, recovers, fails, fails, recovers, fails}, want: 2},
		"Online": {reason: "It has succeeded.", reports: []group.Report{recovers, fails, {Data: group.Whole, State: group.Online}}},
		"Copies": {
			reason:  "Attempts to copy a member are none to bring up to date what is copied, which would be set aside once the copy is complete.",
			reports: []group.Report{copies, copyFails, copies, copyFails, {Data: group.Whole, State: group.Offline}},
		},
		"Replaced": {
			reason:  "What could not be brought up to date is replaced by a copy.",
			reports: []group.Report{recovers, fails, copies, {Data: group.Whole, State: group.Offline}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{}
			for i := range c.reports {
				s.count(&c.reports[i])
			}
			if s.failures != c.want {
				t.Errorf("%s\ncount(): got %d failures, want %d", c.reason, s.failures, c.want)
			}
		})
	}
}
