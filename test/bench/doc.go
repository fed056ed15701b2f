// Package bench measures the function against a floor: a minimal function-sdk-go function that
// returns the same resources from memory, so that it only decodes the request and encodes the
// response. Only the ratio of the two within one run is meaningful, because machines differ and
// are noisy. BenchmarkRatio reports it, from calls made in turns.
//
//	make bench
package bench
