package functionstest

import "time"

// Limits of Crossplane's circuit breaker by default, which counts the events of a claim.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/circuit/token_bucket.go
const (
	bucketBurst  = 100
	bucketRefill = 1 // tokens a second
)

// bucket is that of a claim: the circuit breaker opens when it is empty.
type bucket struct {
	level, lowest float64
	taken         int
	last          time.Duration
}

func newBucket() bucket { return bucket{level: bucketBurst, lowest: bucketBurst} }

// take takes the tokens of an event of an object: one for its creation and two for an update, since the
// watch's handler maps the old and the new object.
func (b *bucket) take(now time.Duration, isCreation bool) {
	n := 2
	if isCreation {
		n = 1
	}
	b.level = min(bucketBurst, b.level+bucketRefill*(now-b.last).Seconds()) - float64(n)
	b.lowest, b.taken, b.last = min(b.lowest, b.level), b.taken+n, now
}

// Tokens returns how many tokens of Crossplane's circuit breaker a claim has taken, and the lowest level of
// its bucket, which begins with 100. Below zero the breaker would have opened.
func (c *Cluster) Tokens(k Key) (taken int, lowest float64) {
	b := c.claims[k].bucket
	return b.taken, b.lowest
}
