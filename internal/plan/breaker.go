package plan

import "fmt"

// breakerBurst is how many tokens the bucket of a claim has in Crossplane's circuit breaker
// unless Crossplane is installed with another --circuit-breaker-burst
// (https://github.com/crossplane/crossplane/blob/main/internal/circuit/token_bucket.go).
const breakerBurst = 100

// Breaker is what the changes of objects take of the tokens of Crossplane's circuit breaker.
type Breaker struct {
	// Claim whose tokens are taken. Of a claim and the claims that it composes it is the one
	// that loses the most: each has a bucket of its own.
	Claim Object `json:"claim"`

	// Tokens that are taken at least: one for each object that is created or deleted, and
	// two for each that is changed. The changes of status that follow take more.
	Tokens int `json:"tokens"`

	// Burst is how many tokens a full bucket has by default. One is added each second.
	Burst int `json:"burst"`
}

// String is the line of a report.
func (b Breaker) String() string {
	return fmt.Sprintf("at least %d of the %d tokens of %s", b.Tokens, b.Burst, b.Claim)
}

// notable says that the changes may open the breaker: the changes of status that follow
// take about as many tokens again.
func (b Breaker) notable() bool { return 2*b.Tokens > b.Burst }

// breaker returns what changes take, or nil if there are none.
func breaker(changes []Change) *Breaker {
	tokens := map[Object]int{}
	for _, c := range changes {
		switch c.Action {
		case Create, Delete:
			tokens[c.Owner]++
		case Update, Adopt:
			tokens[c.Owner] += 2
		}
	}
	var most *Breaker
	// In the order of the changes, so that equals do not take turns.
	for _, c := range changes {
		if n := tokens[c.Owner]; most == nil || n > most.Tokens {
			most = &Breaker{Claim: c.Owner, Tokens: n, Burst: breakerBurst}
		}
	}
	return most
}
