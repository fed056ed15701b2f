package harness

import "math/rand/v2"

// Draw n of some kinds by a seed: the same seed draws the same, each kind comes about
// equally often, and in no order.
func Draw(seed uint64, n int, kinds ...string) []string {
	drawn := make([]string, n)
	for i := range drawn {
		drawn[i] = kinds[i%len(kinds)]
	}
	Dice(seed, 0).Shuffle(n, func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// Dice of a seed, for one of several things: they fall the same way each time.
func Dice(seed, of uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, of)) //nolint:gosec // It is to be repeated, not to be a secret.
}
