package supervisor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestDemoted: when a server that was the primary is not any more.
func TestDemoted(t *testing.T) {
	leads, serves := group.Member{Server: "a", State: group.Online, Primary: true}, group.Member{Server: "b", State: group.Online}
	read := group.Member{Server: "b", State: group.Online, Primary: true}
	for name, c := range map[string]struct {
		reason string
		in     group.Report
		want   bool
	}{
		"Succeeded":  {reason: "Another member leads.", in: group.Report{Server: "b", Running: true, State: group.Online, Members: []group.Member{leads, serves}}, want: true},
		"Primary":    {reason: "It leads.", in: group.Report{Server: "a", Running: true, State: group.Online, Primary: true, Members: []group.Member{leads, serves}}},
		"ReadOnly":   {reason: "It leads, and an administrator has it refuse writes.", in: group.Report{Server: "b", Running: true, State: group.Online, Members: []group.Member{read}}},
		"Unknown":    {reason: "No member leads at the moment.", in: group.Report{Server: "b", Running: true, State: group.Online, Members: []group.Member{serves}}},
		"Lost":       {reason: "The one that led does not answer the others.", in: group.Report{Server: "b", Running: true, State: group.Online, Members: []group.Member{{Server: "a", State: group.Unreachable, Primary: true}, serves}}},
		"Left":       {reason: "It is in no group.", in: group.Report{Server: "b", Running: true, State: group.Offline}, want: true},
		"Failed":     {reason: "It was expelled.", in: group.Report{Server: "b", Running: true, State: group.Failed}, want: true},
		"Silent":     {reason: "It may take writes all the same.", in: group.Report{}},
		"Recovering": {reason: "It joins beside another primary.", in: group.Report{Server: "b", Running: true, State: group.Recovering, Members: []group.Member{leads}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := demoted(&c.in); got != c.want {
				t.Errorf("%s\ndemoted(): got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

// TestDue: what is done about clients while a server is observed each second.
func TestDue(t *testing.T) {
	leads := group.Member{Server: "a", State: group.Online, Primary: true}
	other := group.Member{Server: "b", State: group.Online, Primary: true}
	primary := group.Report{Server: "a", Running: true, State: group.Online, Primary: true, Members: []group.Member{leads}}
	replica := group.Report{Server: "a", Running: true, State: group.Online, Members: []group.Member{{Server: "a", State: group.Online}, other}}
	unknown := group.Report{Server: "a", Running: true, State: group.Online, Members: []group.Member{{Server: "a", State: group.Online}}}
	left, silent := group.Report{Server: "a", Running: true, State: group.Offline}, group.Report{}
	for name, c := range map[string]struct {
		reason string
		led    bool
		lost   bool
		in     []group.Report
		want   []gate
	}{
		"Leads":     {reason: "Nothing, while it leads.", led: true, in: []group.Report{primary, primary, silent, primary}, want: []gate{keep, keep, keep, keep}},
		"Replica":   {reason: "Nothing, at one that did not lead.", in: []group.Report{replica, left, replica}, want: []gate{keep, keep, keep}},
		"Succeeded": {reason: "They are let in after refuseFor.", led: true, in: []group.Report{primary, replica, replica, replica, replica}, want: []gate{keep, shut, keep, admit, keep}},
		"Late":      {reason: "The sessions end once it is known that another one leads.", led: true, in: []group.Report{unknown, unknown, replica}, want: []gate{keep, keep, shut}},
		"Silent":    {reason: "One that did not answer for a moment still refuses clients.", led: true, in: []group.Report{replica, silent, silent, replica}, want: []gate{shut, keep, keep, admit}},
		"Again":     {reason: "They are let in at once if it leads again.", led: true, in: []group.Report{replica, primary, primary}, want: []gate{shut, admit, keep}},
		"Lost":      {reason: "The server may refuse clients although its answer is lost.", led: true, lost: true, in: []group.Report{replica, replica, primary, primary}, want: []gate{shut, shut, admit, keep}},
		"Left":      {reason: "One that has left its group refuses them until it is in it.", led: true, in: []group.Report{left, left, left, left, replica}, want: []gate{shut, keep, keep, keep, admit}},
	} {
		t.Run(name, func(t *testing.T) {
			d, now := demotion{led: c.led}, time.Unix(0, 0)
			var got []gate
			for i := range c.in {
				now = now.Add(time.Second)
				due := d.due(&c.in[i], now)
				got = append(got, due)
				switch due {
				case keep:
				case shut:
					d = demotion{led: c.lost, since: now}
				case admit:
					d.since = time.Time{}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\ndue(): -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}
