package instance

import "fmt"

// Versions of what the function and the instance managers tell each other: Desired one way, Cluster
// and Member the other. A server may wait for its maintenance window with the manager of an older
// release, and after a rollback managers are newer than the function.
//
// What one side may ignore is no new version: a field that is added, and that is not reported by
// managers of an older release. Any other change is. The function then writes both, that of the
// release before where a manager speaks no other, so a release speaks two at most.
const (
	// Protocol is the newest version that this release speaks.
	Protocol = 1

	// OldestProtocol is the oldest one that it speaks.
	OldestProtocol = 1
)

// Spoken is the version that a side speaks which reports one, or none as releases do that did not
// know of versions.
func Spoken(reported int) int { return max(reported, 1) }

// Negotiate the version that all members of a cluster speak, where this side speaks those from oldest
// to newest. It is false where some are too old: their pods have to be replaced at once.
func Negotiate(members map[string]Member, oldest, newest int) (int, bool) {
	lowest := newest
	for _, m := range members {
		lowest = min(lowest, Spoken(m.Protocol))
	}
	return max(lowest, oldest), lowest >= oldest
}

// CheckProtocol of what a manager is told.
func (d *Desired) CheckProtocol(oldest, newest int) error {
	if p := Spoken(d.Protocol); p < oldest || p > newest {
		return fmt.Errorf("the function speaks version %d of the protocol, and this instance manager those from %d to %d: upgrade the claim with storeplane upgrade, or install the release that its pods are of", p, oldest, newest)
	}
	return nil
}
