package functions

import (
	"sync"
	"testing"
)

// TestWorkers starts more calls at once than workers may wait, and all of them
// end only when the last one has begun: none waits for another.
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
