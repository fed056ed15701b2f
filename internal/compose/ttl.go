package compose

import "time"

// How soon Crossplane calls again when nothing in the cluster changes. Changes are
// watched, but a circuit breaker drops events of a claim whose objects change often, so a
// claim that has not settled, or whose breaker is open, asks to be looked at again: soon at
// first, and less and less as nothing comes of it. Crossplane adds a jitter of a tenth.
const (
	soonTTL      = 5 * time.Second
	unsettledTTL = time.Minute
	openTTL      = 10 * time.Second // Crossplane passes on an event each 30 seconds.

	// toldTTL is for a claim that has settled and only has to be called ready,
	// which the event of its own status sees to if it is not dropped.
	toldTTL = time.Second

	// A claim that has settled is looked at after a time between these, which is its own,
	// so that a thousand claims that started together are not looked at together.
	settledTTL    = 10 * time.Minute
	settledSpread = 20 * time.Minute

	// growth is the share of the time that a state has lasted after which it is looked at
	// again.
	growth = 6
)

// ttl of a response. Interval is the one that the installation asks for, or 0.
func (c *Claim) ttl(settled bool, interval time.Duration) time.Duration {
	if c.again > 0 {
		return min(c.again, c.ttlOf(settled, interval))
	}
	return c.ttlOf(settled, interval)
}

// LookAgain asks for the next pass after a time at most, where no event tells that it is due.
func (c *Claim) LookAgain(after time.Duration) {
	if c.again == 0 || after < c.again {
		c.again = after
	}
}

func (c *Claim) ttlOf(settled bool, interval time.Duration) time.Duration {
	if open, known := c.circuitOpenFor(); known {
		if left := circuitCooldown - open; left > 0 {
			return min(grown(open, openTTL), max(left, time.Second))
		}
		return grown(open, unsettledTTL)
	}
	switch {
	case !c.isWatched():
		return soonTTL
	case !settled:
		age, _ := c.NotReadyFor()
		return grown(age, unsettledTTL)
	case interval > 0:
		return interval
	default:
		return settledTTL + spread(c.UID(), settledSpread)
	}
}

// grown is what a state that has lasted for a time is looked at again after.
func grown(age, most time.Duration) time.Duration { return min(max(age/growth, soonTTL), most) }

// spread places a claim within a time, always at the same place.
func spread(uid string, within time.Duration) time.Duration {
	d := fnv{sum: offset64}
	d.text(uid)
	return time.Duration(d.sum%uint64(within/time.Second)) * time.Second
}
