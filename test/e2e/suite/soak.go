package suite

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

var (
	soakSeed   = flag.Uint64("soak", 0, "Run nothing but the soak, with the faults that this seed draws.")
	soakFaults = flag.Int("faults", 50, "Number of faults in a soak.")
)

// Fault is a fault of what is under test. draw decides what it hits.
type Fault func(ctx context.Context, n Notes, draw *rand.Rand) error

// Soaks reports whether this is a run of the soak alone.
func (s *Suite) Soaks() bool { return *soakSeed != 0 }

// Soak returns a feature that is to have a check for each of many faults, in an order that the seed draws.
// survives returns the check that a fault is survived. before are the checks that come first.
func (s *Suite) Soak(what, namespace string, faults map[string]Fault, before func(Feature) Feature, survives func(fault func(context.Context, Notes) error) Check) Feature {
	f := before(s.Feature(fmt.Sprintf("%s under %d faults, seed %d", what, *soakFaults, *soakSeed), namespace))
	for i, name := range harness.Draw(*soakSeed, *soakFaults, slices.Sorted(maps.Keys(faults))...) {
		draw := harness.Dice(*soakSeed, uint64(i+1))
		f = f.Quick(fmt.Sprintf("%02d %s", i+1, name), survives(func(ctx context.Context, n Notes) error { return faults[name](ctx, n, draw) }))
	}
	return f
}
