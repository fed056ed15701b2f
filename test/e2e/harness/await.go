package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
)

// Await asks once a second, for what no watched namespace has. An error of done is the reason why
// it is not.
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
