package group

// Yields reports whether a member whose volume is full leaves its group, given the reports of the other members that
// answer. As the primary it would take no writes, and as a replica that falls behind it would have the primary throttle
// them (https://dev.mysql.com/doc/refman/9.7/en/group-replication-flow-control.html). It stays unless the others that
// have room are a majority by themselves: then no two servers that become full one after the other both leave, and
// whichever is elected next has room, or leaves in turn.
func Yields(own *Report, others map[string]Report) bool {
	// A copy replaces the data, which makes room.
	if !own.Joined() || !own.Full || own.Data != Whole {
		return false
	}
	roomy := 0
	for _, r := range others {
		if r.counts() && r.Group == own.Group && !r.Full {
			roomy++
		}
	}
	return roomy > len(own.Members)/2
}
