package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"

	"github.com/storeplane/storeplane/functions"
)

// call calls the function once.
type call func(context.Context) error

// BenchmarkInProcess decodes the request, runs the function and encodes the response, without a
// network.
func BenchmarkInProcess(b *testing.B) {
	each(b, func(b *testing.B, name string, observed bool) {
		req := mustRequest(b, name, observed)
		wire, err := proto.Marshal(req)
		if err != nil {
			b.Fatal(err)
		}
		fl, err := newFloor(req)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range []struct {
			name string
			fn   fnv1.FunctionRunnerServiceServer
		}{{"floor", fl}, {"storeplane", functions.New()}} {
			b.Run("function="+f.name, func(b *testing.B) {
				b.ReportAllocs()
				measure(b, 1, func(ctx context.Context) error {
					in := &fnv1.RunFunctionRequest{}
					if err := proto.Unmarshal(wire, in); err != nil {
						return err
					}
					rsp, err := f.fn.RunFunction(ctx, in)
					if err != nil {
						return err
					}
					_, err = proto.Marshal(rsp)
					return err
				})
			})
		}
	})
}

// BenchmarkGRPC calls a server in another process over the loopback interface.
func BenchmarkGRPC(b *testing.B) {
	each(b, func(b *testing.B, name string, observed bool) {
		req := mustRequest(b, name, observed)
		for _, callers := range []int{1, 4} {
			for _, which := range []string{"floor", "storeplane"} {
				b.Run(fmt.Sprintf("callers=%d/function=%s", callers, which), func(b *testing.B) {
					s := startServer(b, which, name, observed)
					measure(b, callers, remote(s, req))
				})
			}
		}
	})
}

// BenchmarkMemory reports the server's resident memory after 10,000 calls, and the processor time
// of each. It is measured with 4 and with 100 callers at a time, because Crossplane reconciles up
// to a hundred claims at once.
func BenchmarkMemory(b *testing.B) {
	const calls = 10_000
	each(b, func(b *testing.B, name string, observed bool) {
		req := mustRequest(b, name, observed)
		for _, callers := range []int{4, 100} {
			for _, which := range []string{"floor", "storeplane"} {
				b.Run(fmt.Sprintf("callers=%d/function=%s", callers, which), func(b *testing.B) {
					for b.Loop() {
						s := startServer(b, which, name, observed)
						if _, err := run(b.Context(), calls, callers, remote(s, req)); err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(s.residentMiB(b), "resident-MiB")
						b.ReportMetric(float64(s.processorTime(b).Microseconds())/calls, "cpu-µs/call")
					}
				})
			}
		}
	})
}

func remote(s *server, req *fnv1.RunFunctionRequest) call {
	return func(ctx context.Context) error {
		_, err := s.client.RunFunction(ctx, req)
		return err
	}
}

func each(b *testing.B, f func(b *testing.B, name string, observed bool)) {
	b.Helper()
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		for _, observed := range []bool{false, true} {
			label := "nothing"
			if observed {
				label = "everything"
			}
			b.Run(fmt.Sprintf("claim=%s/observed=%s", name, label), func(b *testing.B) { f(b, name, observed) })
		}
	}
}

// measure makes b.N calls and reports the median and the 99th percentile of their times, and the
// calls per second.
func measure(b *testing.B, callers int, c call) {
	b.Helper()
	// The first calls to a server open the connection and initialize its encoders.
	if _, err := run(b.Context(), 20, callers, c); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	took, err := run(b.Context(), b.N, callers, c)
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// run makes n calls from several callers at once and returns the time that each took.
func run(ctx context.Context, n, callers int, c call) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			for i := w; i < n; i += callers {
				start := time.Now()
				if err := c(ctx); err != nil {
					errs[w] = err
					return
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return took, nil
}
