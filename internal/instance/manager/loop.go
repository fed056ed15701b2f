package manager

import (
	"context"
	"time"
)

// pause between two passes at least, however much happens.
const pause = time.Second

// signal wakes a loop. Many signals are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// loop calls a pass when it is woken, and after the time that the pass before
// asked for, until the context ends.
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

// wait for a time, or until the context ends, and say whether it has not.
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
