package manager

import (
	"context"
	"time"
)

// pause is the shortest time between two passes.
const pause = time.Second

// signal wakes a loop. Signals that were not received yet count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// loop calls pass when it is woken, and after the time that the last pass returned, until the
// context ends.
func loop(ctx context.Context, wake signal, pass func(context.Context) time.Duration) {
	for ctx.Err() == nil {
		timer := time.NewTimer(max(pass(ctx), pause))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-wake:
			wait(ctx, pause)
		}
		timer.Stop()
	}
}

// wait waits for a time or until the context ends. It reports whether the time has passed.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
