package functions_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// fullShop is a development shop with all that it may have, and smallShop one with a migration alone.
const (
	fullShop = `
  environment: development
  frontend: {image: front:1, probe: {path: /readyz}}
  backend:
    image: back:1
    probe: {path: /readyz}
    migration: {args: [migrate]}
    cronJobs: [{name: prune, schedule: "0 4 * * *", args: [prune]}]
  ingress: {host: store.example.com}
  config: {LOG_LEVEL: info}
`
	smallShop = `
  environment: development
  frontend: {image: front:1, probe: {path: /readyz}}
  backend: {image: back:1, probe: {path: /readyz}, migration: {args: [migrate]}}
`
)

// TestPasses: what a development shop costs until it is Ready. Crossplane applies each object in each
// pass, so passes are what can be saved. The bounds have no slack: with -v the test prints each pass
// with its cause, which shows what a change has added.
func TestPasses(t *testing.T) {
	cases := map[string]struct {
		spec    string
		applies int           // of the median of some runs, at most
		ready   time.Duration // at most
	}{
		"Full":  {spec: fullShop, applies: 750, ready: 23100 * time.Millisecond},
		"Small": {spec: smallShop, applies: 630, ready: 22600 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var runs []run
			for seed := range uint64(5) {
				c := functionstest.NewCluster(t, functionstest.EcommercePlatform(tc.spec), seed)
				ready := c.RunUntilReady(functionstest.Key{Kind: "EcommercePlatform", Name: "store"})
				runs = append(runs, run{ready, c.Passes})
			}
			slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.sum("").Applies, b.sum("").Applies) })
			median := runs[len(runs)/2]
			for _, p := range median.passes {
				if i := slices.IndexFunc(p.Causes, func(cause string) bool { return strings.HasPrefix(cause, "Pod ") }); i >= 0 {
					t.Errorf("%v at %v: %s began it, and pods are not to be watched while they start", p.Claim, p.At, p.Causes[i])
				}
				t.Logf("%6.2f %s: %d objects, %d applies, %d updates, %d events, %d writes; %s", p.At.Seconds(), p.Claim, p.Objects, p.Applies, p.Updates, p.Events, p.Writes, strings.Join(p.Causes, ", "))
			}
			for _, claim := range []string{"EcommercePlatform store", "DatabaseCluster store-database", "WebApp store-backend", "WebApp store-frontend", ""} {
				t.Logf("%v: %v", claim, median.sum(claim))
			}
			if got := median.sum("").Applies; got > tc.applies {
				t.Errorf("want at most %d applies until it is Ready, got %d", tc.applies, got)
			}
			if median.ready > tc.ready {
				t.Errorf("want it Ready after %v at most, got %v", tc.ready, median.ready)
			}
		})
	}
}

// TestBreaker: the circuit breaker of a development shop, with Crossplane's defaults, stays closed while the
// shop comes up, in each of many runs. An event of a claim may make Crossplane write old conditions again
// where its cache is late, which takes four tokens each time: on a cluster more often than here, so some
// must be left.
func TestBreaker(t *testing.T) {
	const left = 12
	for name, spec := range map[string]string{"Full": fullShop, "Small": smallShop} {
		t.Run(name, func(t *testing.T) {
			least := math.Inf(1)
			for seed := range uint64(20) {
				c := functionstest.NewCluster(t, functionstest.EcommercePlatform(spec), seed)
				c.RunUntilReady(functionstest.Key{Kind: "EcommercePlatform", Name: "store"})
				for _, k := range []functionstest.Key{{Kind: "EcommercePlatform", Name: "store"}, {Kind: "DatabaseCluster", Name: "store-database"}, {Kind: "WebApp", Name: "store-backend"}, {Kind: "WebApp", Name: "store-frontend"}} {
					taken, lowest := c.Tokens(k)
					least = min(least, lowest)
					if lowest < left {
						t.Errorf("run %d: %v took %d tokens, and its bucket had %.1f left: want %d at least", seed, k, taken, lowest, left)
					}
				}
			}
			t.Logf("%.1f tokens were left at least", least)
		})
	}
}

// run is one run of the simulation.
type run struct {
	ready  time.Duration
	passes []*functionstest.Pass
}

// total is what several passes cost.
type total struct{ Passes, Applies, Updates, Events, Reads, Writes int }

func (t total) String() string {
	return fmt.Sprintf("%d passes, %d applies, %d updates, %d events, %d reads, %d writes", t.Passes, t.Applies, t.Updates, t.Events, t.Reads, t.Writes)
}

// sum returns what the passes of a claim cost, or those of all claims if it is "".
func (r run) sum(claim string) total {
	var out total
	for _, p := range r.passes {
		if claim == "" || p.Claim.String() == claim {
			out.Passes++
			out.Applies += p.Applies
			out.Updates += p.Updates
			out.Events += p.Events
			out.Reads += p.Reads
			out.Writes += p.Writes
		}
	}
	return out
}
