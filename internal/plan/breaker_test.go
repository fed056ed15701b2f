package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBreaker(t *testing.T) {
	shop, db := Object{Kind: "EcommercePlatform", Name: "store"}, Object{Kind: "DatabaseCluster", Name: "store-db"}
	of := func(owner Object, actions ...Action) (out []Change) {
		for _, a := range actions {
			out = append(out, Change{Action: a, Owner: owner})
		}
		return out
	}
	cases := map[string]struct {
		reason  string
		changes []Change
		want    *Breaker
	}{
		"None":   {reason: "Nothing changes."},
		"Create": {reason: "An object that is created is one event.", changes: of(shop, Create, Create, Create), want: &Breaker{Claim: shop, Tokens: 3, Burst: 100}},
		"Change": {reason: "Crossplane counts an update once for what was and once for what is.", changes: of(shop, Update, Adopt, Delete), want: &Breaker{Claim: shop, Tokens: 5, Burst: 100}},
		"Nested": {
			reason:  "Each claim has a bucket of its own.",
			changes: append(of(shop, Create, Create), of(db, Update, Create, Create)...),
			want:    &Breaker{Claim: db, Tokens: 4, Burst: 100},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, breaker(tc.changes)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBreakerNotable: a plan names the circuit breaker if the changes may open it.
func TestBreakerNotable(t *testing.T) {
	for tokens, want := range map[int]bool{1: false, 50: false, 51: true, 120: true} {
		if got := (Breaker{Tokens: tokens, Burst: breakerBurst}).notable(); got != want {
			t.Errorf("%d tokens: want %t, got %t", tokens, want, got)
		}
	}
}
