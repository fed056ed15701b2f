// Package pace has the loops of instance managers take turns of waiting and working.
package pace

import (
	"context"
	"time"
)

// Pause is the shortest time between two passes.
const Pause = time.Second

// Signal wakes a loop. Signals that were not received yet count as one.
type Signal chan struct{}

// NewSignal returns a signal.
func NewSignal() Signal { return make(Signal, 1) }

// Send wakes the loop.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Loop calls pass when it is woken, and after the time that the last pass returned, until the
// context ends.
func Loop(ctx context.Context, wake Signal, pass func(context.Context) time.Duration) {
	for ctx.Err() == nil {
		timer := time.NewTimer(max(pass(ctx), Pause))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-wake:
			Wait(ctx, Pause)
		}
		timer.Stop()
	}
}

// Wait waits for a time or until the context ends. It reports whether the time has passed.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
