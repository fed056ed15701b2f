package group

import (
	"strconv"
	"testing"
)

// TestDeserted: a member knows by the others whether its view is one of the past.
func TestDeserted(t *testing.T) {
	in := Report{Running: true, State: Online, View: "7:3"}
	recovering, later, failed, out, silent := in, in, in, in, in
	recovering.State = Recovering
	later.View = "7:4"
	failed.State = Failed
	out.State, out.View = Offline, ""
	silent.Running = false
	for name, c := range map[string]struct {
		reason string
		own    Report
		size   int
		others []Report

		// unreachable is true if the member shows the others as that.
		unreachable bool

		deserted, deceived bool
	}{
		"InView":      {reason: "All are in its view.", own: in, size: 3, others: []Report{in, recovering}},
		"OneLeft":     {reason: "A majority is, but the other one should be gone.", own: in, size: 3, others: []Report{in, out}, deceived: true},
		"OneLeaves":   {reason: "One that has failed takes its time to leave.", own: in, size: 3, others: []Report{in, failed}},
		"OneLost":     {reason: "It has noticed that one is gone.", own: in, size: 3, others: []Report{in, out}, unreachable: true},
		"AllLeft":     {reason: "The others have left, and it has not noticed.", own: in, size: 3, others: []Report{out, out}, deserted: true, deceived: true},
		"AllLost":     {reason: "It has noticed, and has not left yet.", own: in, size: 3, others: []Report{out, out}, unreachable: true, deserted: true},
		"Expelled":    {reason: "The others have a view without it.", own: in, size: 3, others: []Report{later, later}, deserted: true},
		"LeftAndLate": {reason: "One has left and one has another view.", own: in, size: 3, others: []Report{later, out}, deserted: true, deceived: true},
		"Recovering":  {reason: "On its way into a group it may be deserted, too.", own: recovering, size: 3, others: []Report{later, later}, deserted: true},
		"Silent":      {reason: "A server that does not answer may be in it.", own: in, size: 3, others: []Report{silent, silent}},
		"Unknown":     {reason: "So may those that cannot be asked.", own: in, size: 3},
		"OneOfTwo":    {reason: "Half of a view is no majority.", own: in, size: 2, others: []Report{out}, deserted: true, deceived: true},
		"Alone":       {reason: "No other server is in its view.", own: in, size: 1},
		"TwoOfFive":   {reason: "Three of five are a majority.", own: in, size: 5, others: []Report{failed, later, in, in}},
		"ThreeOfFive": {reason: "Two of five are none.", own: in, size: 5, others: []Report{failed, later, failed, in}, deserted: true},
		"Left":        {reason: "A server outside of a group has no view.", own: out, size: 3, others: []Report{out, out}},
	} {
		t.Run(name, func(t *testing.T) {
			others, own := map[string]Report{}, c.own
			for i := range c.size {
				m := Member{Address: strconv.Itoa(i), State: Online}
				if c.unreachable {
					m.State = Unreachable
				}
				if i < len(c.others) {
					others[m.Address] = c.others[i]
				}
				own.Members = append(own.Members, m)
			}
			if got := Deserted(&own, others); got != c.deserted {
				t.Errorf("%s\nDeserted(): got %t, want %t", c.reason, got, c.deserted)
			}
			if got := Deceived(&own, others); got != c.deceived {
				t.Errorf("%s\nDeceived(): got %t, want %t", c.reason, got, c.deceived)
			}
		})
	}
}
