package functions

import (
	"sync"
	"testing"
)

// TestWorkers: more calls can run at once than workers may be idle, and no call waits for another.
// Each call ends only when the last one has begun.
func TestWorkers(t *testing.T) {
	const calls, rounds, waiting = 50, 20, 4
	w := newWorkers(waiting)
	for range rounds {
		var begun, done sync.WaitGroup
		begun.Add(calls)
		done.Add(calls)
		for range calls {
			w.start(func() {
				begun.Done()
				begun.Wait()
				done.Done()
			})
		}
		done.Wait()
	}
	if got := len(w.waiting); got > waiting {
		t.Errorf("want at most %d workers to wait, got %d", waiting, got)
	}
}
