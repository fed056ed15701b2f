package group

import "testing"

func TestYields(t *testing.T) {
	report := func(primary, full bool) Report {
		return Report{Running: true, Data: Whole, State: Online, Group: "g", Primary: primary, Full: full, Members: make([]Member, 3)}
	}
	primary, replica := report(true, true), report(false, true)
	room, full := report(false, false), report(false, true)
	leads, other, recovers := report(true, false), report(false, false), report(false, false)
	other.Group, recovers.State = "other", Recovering
	leaves, enough := replica, replica
	leaves.State, enough.Full = Offline, false
	joining := replica
	joining.State = Recovering
	copies := joining
	copies.Data = Copy
	five, two, alone := replica, primary, primary
	five.Members, two.Members, alone.Members = make([]Member, 5), make([]Member, 2), make([]Member, 1)
	cases := map[string]struct {
		reason string
		own    Report
		others []Report
		want   bool
	}{
		"Primary":          {reason: "Another server takes its writes.", own: primary, others: []Report{room, room}, want: true},
		"PrimaryOfTwoFull": {reason: "The next primary could be as full.", own: primary, others: []Report{full, room}},
		"PrimaryNoneHas":   {reason: "The next primary would be as full.", own: primary, others: []Report{full, full}},
		"PrimaryOneAway":   {reason: "The one that is left could not go on.", own: primary, others: []Report{room}},
		"PrimaryOfTwo":     {reason: "One server alone would acknowledge what no other has.", own: two, others: []Report{room}},
		"Replica":          {reason: "The others are a majority without it.", own: replica, others: []Report{leads, room}, want: true},
		"ReplicaOfTwoFull": {reason: "Another one is full, too, and only one of both may leave.", own: replica, others: []Report{leads, full}},
		"ReplicaOfFive":    {reason: "Three of five are a majority.", own: five, others: []Report{leads, room, room, full}, want: true},
		"ReplicaOfFiveTwo": {reason: "Two of five are none.", own: five, others: []Report{leads, room, full, full}},
		"Joins":            {reason: "One that cannot be brought up to date holds up the others, too.", own: joining, others: []Report{leads, room}, want: true},
		"Copies":           {reason: "A copy replaces the data, which makes room.", own: copies, others: []Report{leads, room}},
		"OthersJoin":       {reason: "A server that is on its way into the group does not count yet.", own: replica, others: []Report{leads, recovers}},
		"OtherGroup":       {reason: "A server of another group does not count.", own: replica, others: []Report{leads, other}},
		"Alone":            {reason: "There is no other server.", own: alone},
		"HasRoom":          {reason: "It is not full.", own: enough, others: []Report{leads, room}},
		"NoMember":         {reason: "It has left.", own: leaves, others: []Report{leads, room}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			others := map[string]Report{}
			for i, r := range tc.others {
				others[string(rune('a'+i))] = r
			}
			if got := Yields(&tc.own, others); got != tc.want {
				t.Errorf("%s\nYields(...): got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
