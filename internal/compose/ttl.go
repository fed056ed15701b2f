package compose

import "time"

// Times to live of responses: after these Crossplane composes a claim again though nothing
// in the cluster has changed. Changes are watched, but a circuit breaker drops events of a
// claim whose objects change often, so a claim that has not settled, or whose breaker is
// open, is composed again after initialTTL at first, and less often the longer that lasts.
// Crossplane adds a jitter of a tenth.
const (
	initialTTL   = 5 * time.Second
	unsettledTTL = time.Minute
	openTTL      = 10 * time.Second // Crossplane passes on an event each 30 seconds.

	// reportedTTL is for a claim that has settled and only has to be called ready,
	// which the event of its own status sees to if it is not dropped.
	reportedTTL = time.Second

	// A claim that has settled is composed again after a time of its own, from settledTTL to
	// settledSpread more, so that a thousand claims that started together are not composed
	// together.
	settledTTL    = 10 * time.Minute
	settledSpread = 20 * time.Minute

	// growth is the share of the time that a state has lasted after which the claim is
	// composed again.
	growth = 6
)

// ttl of a response. Interval is the one that the installation asks for, or 0.
func (c *Claim) ttl(settled bool, interval time.Duration) time.Duration {
	if c.requeueWithin > 0 {
		return min(c.requeueWithin, c.ttlOf(settled, interval))
	}
	return c.ttlOf(settled, interval)
}

// RequeueWithin has the next pass begin after a time at most, where no event announces that it is due.
func (c *Claim) RequeueWithin(after time.Duration) {
	if c.requeueWithin == 0 || after < c.requeueWithin {
		c.requeueWithin = after
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
		return initialTTL
	case !settled:
		age, _ := c.NotReadyFor()
		return grown(age, unsettledTTL)
	case interval > 0:
		return interval
	default:
		return settledTTL + spread(c.UID(), settledSpread)
	}
}

// grown is the time to live in a state that has lasted for a time.
func grown(age, most time.Duration) time.Duration { return min(max(age/growth, initialTTL), most) }

// spread places a claim within a time, always at the same place.
func spread(uid string, within time.Duration) time.Duration {
	d := fnv{sum: offset64}
	d.text(uid)
	return time.Duration(d.sum%uint64(within/time.Second)) * time.Second
}
