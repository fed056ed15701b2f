package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

const (
	// retryFor is how long a request is retried during a failover of the database.
	retryFor = 10 * time.Second

	// attemptFor is the longest time of one attempt, so that a host that does not answer does not
	// use up the whole time.
	attemptFor = 4 * time.Second

	firstWait = 50 * time.Millisecond
	maxWait   = time.Second
)

// ErrUnavailable means that the database did not serve the request in time. The client may retry.
var ErrUnavailable = errors.New("the database is unavailable")

// An outcome says what a second run does after a commit whose answer was lost, and which may have
// been made.
type outcome bool

const (
	// repeatable is what only reads, or recognizes what the first run did.
	repeatable outcome = true

	// unrepeatable would be done a second time.
	unrepeatable outcome = false
)

// retry runs fn until it succeeds, fails permanently or its time is over, and returns its result.
func retry[T any](ctx context.Context, s *Store, o outcome, fn func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()

	var none T
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		result, err := attempt(ctx, fn)
		var unknown *engine.UnknownOutcomeError
		again := s.engine.Retryable(err)
		switch {
		case err == nil:
			return result, nil
		case errors.As(err, &unknown) && o == unrepeatable, s.engine.Unconnected(err) && !again:
			return none, fmt.Errorf("%w: %w", ErrUnavailable, err)
		case !again:
			return none, err
		}
		// Half of the wait is random: many requests fail at the same moment, and should not all
		// retry at the same one.
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			timer.Stop()
			return none, fmt.Errorf("%w: %w", ErrUnavailable, err)
		case <-timer.C:
		}
	}
}

func attempt[T any](ctx context.Context, fn func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptFor)
	defer cancel()
	return fn(ctx)
}
