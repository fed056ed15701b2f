package plan

import "fmt"

// breakerBurst is how many tokens the bucket of a claim has in Crossplane's circuit breaker
// unless Crossplane is installed with another --circuit-breaker-burst
// (https://github.com/crossplane/crossplane/blob/main/internal/circuit/token_bucket.go).
const breakerBurst = 100

// Breaker is what the changes of objects take of the tokens of Crossplane's circuit breaker.
type Breaker struct {
	// Claim is the claim whose tokens are taken: of a claim and those that it composes, the one
	// from which most are taken. Each claim has a bucket of its own.
	Claim Object `json:"claim"`

	// Tokens is the least number of tokens that are taken: one for each object that is created or
	// deleted, and two for each that is changed. The changes of status that follow take more.
	Tokens int `json:"tokens"`

	// Burst is how many tokens a full bucket has by default. One is added each second.
	Burst int `json:"burst"`
}

// String describes the tokens for the line of a report.
func (b Breaker) String() string {
	return fmt.Sprintf("at least %d of the %d tokens of %s", b.Tokens, b.Burst, b.Claim)
}

// notable reports whether the changes may open the breaker: the changes of status that follow take
// about as many tokens again.
func (b Breaker) notable() bool { return 2*b.Tokens > b.Burst }

// breaker returns the tokens that changes take, or nil without changes.
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
	// In the order of the changes, so that the result is the same each time among equals.
	for _, c := range changes {
		if n := tokens[c.Owner]; most == nil || n > most.Tokens {
			most = &Breaker{Claim: c.Owner, Tokens: n, Burst: breakerBurst}
		}
	}
	return most
}
