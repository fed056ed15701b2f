package group

// Yields reports whether a member whose volume is full leaves its group of a cluster of a size, given the reports of
// the other members that answer. As the primary it would take no writes, and as a replica that falls behind it would
// have the primary throttle them (https://dev.mysql.com/doc/refman/9.7/en/group-replication-flow-control.html). It stays
// where too few others are left: a group without a majority takes no writes either.
func Yields(own *Report, others map[string]Report, size int) bool {
	if !own.Joined() || !own.Full {
		return false
	}
	online, roomy := 0, 0
	for _, pod := range sortedPods(others) {
		r := others[pod]
		if !r.counts() || r.Group != own.Group {
			continue
		}
		online++
		if !r.Full {
			roomy++
		}
	}
	majority := max(size, len(own.Members))/2 + 1
	if own.Primary {
		return roomy > 0 && online >= majority
	}
	return roomy >= majority
}
