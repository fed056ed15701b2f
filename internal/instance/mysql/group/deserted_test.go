package group

import (
	"fmt"
	"testing"
)

// TestDeserted: a member knows by the others whether its view is one of the past.
func TestDeserted(t *testing.T) {
	in := Report{Running: true, State: Online, View: "7:3"}
	recovering, later, out, silent := in, in, in, in
	recovering.State = Recovering
	later.View = "7:4"
	out.State, out.View = Offline, ""
	silent.Running = false
	for name, c := range map[string]struct {
		reason string
		own    Report
		size   int
		others []Report
		want   bool
	}{
		"InView":      {reason: "All are in its view.", own: in, size: 3, others: []Report{in, recovering}},
		"OneLeft":     {reason: "A majority is, and MySQL shows the other one as lost soon.", own: in, size: 3, others: []Report{in, out}},
		"AllLeft":     {reason: "The others have left, and it has not noticed.", own: in, size: 3, others: []Report{out, out}, want: true},
		"Expelled":    {reason: "The others have a view without it.", own: in, size: 3, others: []Report{later, later}, want: true},
		"LeftAndLate": {reason: "One has left and one has another view.", own: in, size: 3, others: []Report{later, out}, want: true},
		"Recovering":  {reason: "On its way into a group it may be deserted, too.", own: recovering, size: 3, others: []Report{later, later}, want: true},
		"Silent":      {reason: "A server that does not answer may be in it.", own: in, size: 3, others: []Report{silent, silent}},
		"Unknown":     {reason: "So may those that cannot be asked.", own: in, size: 3},
		"OneOfTwo":    {reason: "Half of a view is no majority.", own: in, size: 2, others: []Report{out}, want: true},
		"Alone":       {reason: "No other server is in its view.", own: in, size: 1},
		"TwoOfFive":   {reason: "Three of five are a majority.", own: in, size: 5, others: []Report{out, later, in, in}},
		"ThreeOfFive": {reason: "Two of five are none.", own: in, size: 5, others: []Report{out, later, out, in}, want: true},
		"Left":        {reason: "A server outside of a group has no view.", own: out, size: 3, others: []Report{out, out}},
	} {
		t.Run(name, func(t *testing.T) {
			others := map[string]Report{}
			for i, r := range c.others {
				others[fmt.Sprint(i)] = r
			}
			own := c.own
			own.Members = make([]Member, c.size)
			if got := Deserted(&own, others); got != c.want {
				t.Errorf("%s\nDeserted(): got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}
