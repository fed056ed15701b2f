package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
)

// Await calls done once a second, for things that no watch of a namespace shows. The error that
// done returns is the reason why it is not done yet; the last one is part of Await's error.
func Await(ctx context.Context, within time.Duration, what string, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		var ok bool
		ok, last = done(ctx)
		return ok, nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return errors.Join(fmt.Errorf("waited %s for %s", within, what), last)
	}
	return nil
}

// Until waits until a moment, because the duration of a fault is part of it.
func Until(ctx context.Context, moment time.Time) error {
	t := time.NewTimer(time.Until(moment))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
