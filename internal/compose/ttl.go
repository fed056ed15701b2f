package compose

import "time"

// Times to live of responses, after which Crossplane composes a claim again although nothing in the
// cluster has changed. Crossplane watches for changes, but its circuit breaker drops events of a
// claim whose objects change often. So a claim whose breaker is open is composed again after
// initialTTL at first, one that has not settled after startTTL, and both less often the longer that
// lasts. For one that has not settled the time doubles, since of many claims that start together each
// waits for the passes of the others. An event begins the time anew, so that a claim is not composed
// for the time alone while its objects change.
//
// Pods are not watched before one of these passes, and a claim names why they fail within ten seconds.
// So startTTL, with the tenth of it that Crossplane adds as jitter, leaves five seconds for events that
// begin it anew and for the passes of other claims.
const (
	initialTTL   = 5 * time.Second
	startTTL     = 4 * time.Second
	unsettledTTL = time.Minute
	openTTL      = 10 * time.Second // An open breaker lets one event pass every 30 seconds.

	// reportedTTL is for a claim that is healthy and has yet to be reported ready. The event of its
	// own status begins that pass earlier, unless it is dropped.
	reportedTTL = time.Second

	// A claim that has settled is composed again after a time of its own, between settledTTL and
	// settledTTL+settledSpread, so that a thousand claims that started together are not composed
	// together.
	settledTTL    = 10 * time.Minute
	settledSpread = 20 * time.Minute

	// growth divides the time for which a breaker has been open, or something has been refused: after
	// that share of it the claim is composed again.
	growth = 6
)

// ttl returns the time to live of a response. interval is the one that the installation sets, or 0.
func (c *Claim) ttl(settled bool, interval time.Duration) time.Duration {
	if c.requeueWithin > 0 {
		return min(c.requeueWithin, c.ttlOf(settled, interval))
	}
	return c.ttlOf(settled, interval)
}

// RequeueWithin makes the next pass begin within a time, for changes that no event announces. Of
// several calls the shortest time counts.
func (c *Claim) RequeueWithin(after time.Duration) {
	if c.requeueWithin == 0 || after < c.requeueWithin {
		c.requeueWithin = after
	}
}

func (c *Claim) ttlOf(settled bool, interval time.Duration) time.Duration {
	if open, known := c.circuitOpenFor(); known {
		if left := circuitCooldown - open; left > 0 {
			return min(grown(open, initialTTL, openTTL), max(left, time.Second))
		}
		return grown(open, initialTTL, unsettledTTL)
	}
	switch {
	case !c.isWatched():
		return initialTTL
	case !settled:
		age, _ := c.NotReadyFor()
		return min(max(age, startTTL), unsettledTTL)
	case interval > 0:
		return interval
	default:
		return settledTTL + spread(c.UID(), settledSpread)
	}
}

// grown returns the time to live in a state that has lasted for age: between least and most.
func grown(age, least, most time.Duration) time.Duration { return min(max(age/growth, least), most) }

// spread returns an offset within a time, in whole seconds, that is always the same for a claim.
func spread(uid string, within time.Duration) time.Duration {
	d := fnv{sum: offset64}
	d.text(uid)
	return time.Duration(d.sum%uint64(within/time.Second)) * time.Second //nolint:gosec // no time is negative here
}
