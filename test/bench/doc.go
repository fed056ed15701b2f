// Package bench measures the function against a floor: a bare function-sdk-go
// function that returns the same resources ready-made, so that all it does is
// decode the request and encode the response. Only the ratio of the two, from
// one run, means anything: machines differ, and are noisy. BenchmarkRatio has it,
// of calls made in turns.
//
//	make bench
package bench
