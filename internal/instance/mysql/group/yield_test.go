package group

import "testing"

func TestYields(t *testing.T) {
	report := func(primary, full bool) Report {
		return Report{Running: true, State: Online, Group: "g", Primary: primary, Full: full, Members: make([]Member, 3)}
	}
	primary, replica := report(true, true), report(false, true)
	room, full := report(false, false), report(false, true)
	leads, other, recovers := report(true, false), report(false, false), report(false, false)
	other.Group, recovers.State = "other", Recovering
	leaves, enough := replica, replica
	leaves.State, enough.Full = Offline, false
	joining := replica
	joining.State = Recovering
	cases := map[string]struct {
		reason string
		own    Report
		others []Report
		size   int
		want   bool
	}{
		"Primary":           {reason: "Another server takes its writes.", own: primary, others: []Report{room, room}, size: 3, want: true},
		"PrimaryOneHasRoom": {reason: "One that has room is enough to lead.", own: primary, others: []Report{full, room}, size: 3, want: true},
		"PrimaryNoneHas":    {reason: "The next primary would be as full.", own: primary, others: []Report{full, full}, size: 3},
		"PrimaryNoMajority": {reason: "The one that is left could not go on.", own: primary, others: []Report{room}, size: 3},
		"Replica":           {reason: "The others are a majority without it.", own: replica, others: []Report{leads, room}, size: 3, want: true},
		"ReplicaOfTwoFull":  {reason: "Another one is full, too, and only one of both may leave.", own: replica, others: []Report{leads, full}, size: 3},
		"ReplicaOfFive":     {reason: "Three of five are a majority.", own: replica, others: []Report{leads, room, room, full}, size: 5, want: true},
		"Joins":             {reason: "One that cannot be brought up to date holds up the others, too.", own: joining, others: []Report{leads, room}, size: 3, want: true},
		"OthersJoin":        {reason: "A server that is on its way into the group does not count yet.", own: replica, others: []Report{leads, recovers}, size: 3},
		"OtherGroup":        {reason: "A server of another group does not count.", own: replica, others: []Report{leads, other}, size: 3},
		"Single":            {reason: "There is no other server.", own: primary, size: 1},
		"Shrinking":         {reason: "Members that are removed count until they have left.", own: primary, others: []Report{room}, size: 1},
		"HasRoom":           {reason: "It is not full.", own: enough, others: []Report{leads, room}, size: 3},
		"NoMember":          {reason: "It has left.", own: leaves, others: []Report{leads, room}, size: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			others := map[string]Report{}
			for i, r := range tc.others {
				others[string(rune('a'+i))] = r
			}
			if got := Yields(&tc.own, others, tc.size); got != tc.want {
				t.Errorf("%s\nYields(...): got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
