package harness

import "math/rand/v2"

// Draw returns n of the kinds in random order, each about equally often. The same seed gives the
// same result.
func Draw(seed uint64, n int, kinds ...string) []string {
	drawn := make([]string, n)
	for i := range drawn {
		drawn[i] = kinds[i%len(kinds)]
	}
	Dice(seed, 0).Shuffle(n, func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	return drawn
}

// Dice returns a random generator that gives the same sequence for the same seed and number.
func Dice(seed, of uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, of)) //nolint:gosec // It has to be repeatable, not secret.
}
