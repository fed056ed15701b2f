package group

// Deserted reports whether a member is alone with its view: so many of the servers in it report by themselves that they are
// not, that no majority is left. It is given the reports of the others that answer, by the address of the member. A view that
// changes is such a moment, and so is the loss of several servers, which MySQL notices after five seconds, and leaves its group
// after ten more. Where it lasts longer, the server's group communication has stopped, and nothing but a start begins it
// again: MySQL shows all members as ONLINE meanwhile.
func Deserted(own *Report, others map[string]Report) bool {
	if !own.Joined() {
		return false
	}
	left := len(own.Members)
	for _, r := range others {
		if r.Running && (!r.Joined() || r.View != own.View) {
			left--
		}
	}
	return left*2 <= len(own.Members)
}

// Deceived reports whether a member shows another one as reachable that reports to be in no group. It may be for as long as
// that one takes to leave. Where it lasts, group communication has stopped: if it has on two of three servers, each of them
// finds the other in its view.
func Deceived(own *Report, others map[string]Report) bool {
	if !own.Joined() {
		return false
	}
	for _, m := range own.Members {
		if r, answers := others[m.Address]; answers && m.State != Unreachable && r.Running && r.State == Offline {
			return true
		}
	}
	return false
}
