package harness

import "math/rand/v2"

// Draw n of some kinds by a seed: the same seed draws the same, each kind comes about
// equally often, and in no order.
func Draw(seed uint64, n int, kinds ...string) []string {
	drawn := make([]string, n)
	for i := range drawn {
		drawn[i] = kinds[i%len(kinds)]
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(n, func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}
