package instance

import "fmt"

// Versions of the protocol between the function and the instance managers: Desired in one
// direction, Cluster and Member in the other. A server that waits for its maintenance window
// may run the manager of an older release, and after a rollback managers are newer than the
// function.
//
// An addition that the other side may ignore needs no new version: a field that is added, and
// that managers of an older release do not report. Any other change does. The function then
// writes the version of the release before for as long as one manager knows no newer one, so a
// release supports two versions at most.
const (
	// Protocol is the newest version that this release supports.
	Protocol = 1

	// OldestProtocol is the oldest version that this release supports.
	OldestProtocol = 1
)

// Spoken returns the version that a side uses, given the one that it reports. It is 1 for 0,
// which releases from before protocol versions report.
func Spoken(reported int) int { return max(reported, 1) }

// Negotiate returns the newest version that all members of a cluster support, for a side that
// supports those from oldest to newest. It returns false if some members are too old: their
// pods have to be replaced at once.
func Negotiate(members map[string]Member, oldest, newest int) (int, bool) {
	lowest := newest
	for _, m := range members {
		lowest = min(lowest, Spoken(m.Protocol))
	}
	return max(lowest, oldest), lowest >= oldest
}

// CheckProtocol returns an error unless the version of d is from oldest to newest.
func (d *Desired) CheckProtocol(oldest, newest int) error {
	if p := Spoken(d.Protocol); p < oldest || p > newest {
		return fmt.Errorf("the function speaks version %d of the protocol, and this instance manager those from %d to %d: upgrade the claim with storeplane upgrade, or install the release that its pods are of", p, oldest, newest)
	}
	return nil
}
