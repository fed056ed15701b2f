package compose

import (
	"cmp"
	"time"
)

// Times to live of responses, after which Crossplane composes a claim again although nothing in the
// cluster has changed. Crossplane watches for changes, but its circuit breaker drops events of a
// claim whose objects change often. So a claim whose breaker is open is composed again after
// initialTTL at first, one that has not settled after startTTL, and both less often the longer that
// lasts. Crossplane adds a jitter of a tenth. An event begins the time anew, so that a claim is not
// composed for the time alone while its objects change.
const (
	initialTTL = 5 * time.Second
	startTTL   = 10 * time.Second
	openTTL    = 10 * time.Second // An open breaker lets one event pass every 30 seconds.

	// retryTTL is the longest one for what is tried again: of a claim that has failed or is refused, or
	// whose breaker stays open.
	retryTTL = time.Minute

	// waitingTTL is the longest one for a claim that waits for its objects, whose events announce what
	// changes. It doubles, so that many claims that start together, and wait for each other's passes, do
	// not ask for more passes than there can be.
	waitingTTL = 5 * time.Minute

	// reportedTTL is for a claim that is healthy and has yet to be reported ready. The event of its
	// own status begins that pass earlier, unless it is dropped.
	reportedTTL = time.Second

	// A claim that has settled is composed again after a time of its own, between settledTTL and
	// settledTTL+settledSpread, so that a thousand claims that started together are not composed
	// together.
	settledTTL    = 10 * time.Minute
	settledSpread = 20 * time.Minute

	// growth divides the time that a state has lasted in which something is tried again: after that
	// share of it the claim is composed again.
	growth = 6
)

// progress is how far a claim has come, as far as times to live depend on it.
type progress int

const (
	waits   progress = iota // for its objects
	retries                 // what has failed or is refused
	rests                   // since it has settled
)

// progressOf returns the progress of a claim with an outcome.
func progressOf(o Outcome, isSettled bool) progress {
	switch {
	case isSettled:
		return rests
	case o.Phase == Failed:
		return retries
	}
	return waits
}

// ttl returns the time to live of a response. interval is the one that the installation sets, or 0.
func (c *Claim) ttl(p progress, interval time.Duration) time.Duration {
	if c.requeueWithin > 0 {
		return min(c.requeueWithin, c.ttlOf(p, interval))
	}
	return c.ttlOf(p, interval)
}

// RequeueWithin makes the next pass begin within a time, for changes that no event announces. Of
// several calls the shortest time counts.
func (c *Claim) RequeueWithin(after time.Duration) {
	if c.requeueWithin == 0 || after < c.requeueWithin {
		c.requeueWithin = after
	}
}

func (c *Claim) ttlOf(p progress, interval time.Duration) time.Duration {
	if open, known := c.circuitOpenFor(); known {
		if left := circuitCooldown - open; left > 0 {
			return min(grown(open, initialTTL, openTTL), max(left, time.Second))
		}
		return grown(open, initialTTL, retryTTL)
	}
	age, _ := c.NotReadyFor()
	switch {
	case !c.isWatched():
		return initialTTL
	case p == retries:
		return grown(age, startTTL, retryTTL)
	case p == waits:
		return min(max(age, startTTL), cmp.Or(min(interval, waitingTTL), waitingTTL))
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
