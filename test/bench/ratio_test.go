package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkRatio calls the floor and the function in turns, so that the load of the machine
// affects both, and reports the ratio of the function's median to the floor's. The duration of
// the benchmark itself is meaningless.
func BenchmarkRatio(b *testing.B) {
	const rounds, calls = 40, 100
	each(b, func(b *testing.B, name string, observed bool) {
		req := mustRequest(b, name, observed)
		for _, callers := range []int{1, 4} {
			b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
				which := []string{"floor", "storeplane"}
				var servers [2]call
				for i, w := range which {
					servers[i] = remote(startServer(b, w, name, observed), req)
				}
				for b.Loop() {
					var took [2][]time.Duration
					for round := range rounds {
						for i := range servers {
							t, err := run(b.Context(), calls, callers, servers[i])
							if err != nil {
								b.Fatal(err)
							}
							// The first round opens connections and initializes encoders.
							if round > 0 {
								took[i] = append(took[i], t...)
							}
						}
					}
					median := func(i int) float64 {
						slices.Sort(took[i])
						return float64(took[i][len(took[i])/2].Microseconds())
					}
					b.ReportMetric(median(0), "floor-p50-µs")
					b.ReportMetric(median(1), "p50-µs")
					b.ReportMetric(median(1)/median(0), "ratio")
				}
			})
		}
	})
}
