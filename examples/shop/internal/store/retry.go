package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
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

// unknownOutcomeError is a commit whose answer was lost.
type unknownOutcomeError struct{ err error }

func (e *unknownOutcomeError) Error() string {
	return "the outcome of the commit is unknown: " + e.err.Error()
}
func (e *unknownOutcomeError) Unwrap() error { return e.err }

// retry runs fn until it succeeds, fails permanently or its time is over.
func (s *Store) retry(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, retryFor)
	defer cancel()

	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		err := attempt(ctx, fn)
		var unknown *unknownOutcomeError
		var connect *pgconn.ConnectError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &unknown), errors.As(err, &connect) && !retryable(err):
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		case !retryable(err):
			return err
		}
		if sqlState(err) == readOnly {
			// These connections are intact but lead to a former primary.
			s.pool.Reset()
		}
		// Half of the wait is random: many requests fail at the same moment, and should not all
		// retry at the same one.
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		case <-timer.C:
		}
	}
}

func attempt(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, attemptFor)
	defer cancel()
	return fn(ctx)
}

// The SQLSTATE codes of a failover, a restart or a concurrent transaction, after which the same
// transaction may succeed.
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
	tooManyConnections   = "53300"
	readOnly             = "25006"

	// featureNotSupported is PostgreSQL's code for "cached plan must not change result type", after
	// a migration under running backends.
	featureNotSupported = "0A000"

	// uniqueViolation occurs with two orders with the same key at the same time: the second attempt
	// finds the first one's order.
	uniqueViolation = "23505"

	connectionException = "08"
)

// retryable reports whether the same operation may succeed later. It does not consider whether that
// is safe: it is not, once a commit's answer is lost.
func retryable(err error) bool {
	switch code := sqlState(err); code {
	case "":
	case serializationFailure, deadlockDetected, adminShutdown, crashShutdown, cannotConnectNow,
		tooManyConnections, readOnly, featureNotSupported, uniqueViolation:
		return true
	default:
		return strings.HasPrefix(code, connectionException)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// refused reports whether the server itself refused the commit, so that nothing was committed.
func refused(err error) bool {
	switch code := sqlState(err); code {
	case "", adminShutdown, crashShutdown:
		return false
	default:
		return !strings.HasPrefix(code, connectionException)
	}
}

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}
