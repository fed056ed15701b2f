package postgresql

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

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

// Retryable reports whether the same operation may succeed later.
func (d *Database) Retryable(err error) bool {
	switch code := sqlState(err); code {
	case "":
	case serializationFailure, deadlockDetected, adminShutdown, crashShutdown, cannotConnectNow,
		tooManyConnections, readOnly, featureNotSupported, uniqueViolation:
		return true
	default:
		return strings.HasPrefix(code, connectionException)
	}
	var network net.Error
	return d.Unconnected(err) || errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// Unconnected reports whether there was no connection to work with.
func (d *Database) Unconnected(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect)
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
