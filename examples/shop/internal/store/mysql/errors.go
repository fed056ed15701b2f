package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// The errors of a failover, a restart or a concurrent transaction, after which the same transaction
// may succeed (https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html).
const (
	outOfMemory            = 1037
	tooManyConnections     = 1040
	outOfResources         = 1041
	serverShutdown         = 1053
	tooManyUserConnections = 1203
	lockWaitTimeout        = 1205
	deadlock               = 1213
	queryInterrupted       = 1317
	queryTimeout           = 3024
	offline                = 3032
	sessionKilled          = 3169
	clientTimeout          = 4031

	// optionPrevents is the answer of a server with super_read_only, and readOnlyMode that of one
	// whose storage is read-only.
	optionPrevents = 1290
	readOnlyMode   = 1836

	// hookFailed and rolledBackByPlugin are the refusals of Group Replication: the member has left
	// the group, or another member's transaction came first.
	hookFailed         = 3100
	rolledBackByPlugin = 3101

	// duplicateKey occurs with two orders with the same key at the same time: the second attempt
	// finds the first one's order.
	duplicateKey = 1062
)

// The errors of a request.
const (
	noSuchTable = 1146
	dataTooLong = 1406

	// noReferencedRow is that of a product that does not exist.
	noReferencedRow = 1452
)

// connectError is the reason why there was no connection.
type connectError struct{ err error }

func (e *connectError) Error() string { return "cannot connect: " + e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// Retryable reports whether the same operation may succeed later.
func (d *Database) Retryable(err error) bool {
	switch number(err) {
	case 0:
	case outOfMemory, tooManyConnections, outOfResources, serverShutdown, tooManyUserConnections, lockWaitTimeout, deadlock,
		queryInterrupted, queryTimeout, offline, sessionKilled, clientTimeout, optionPrevents, readOnlyMode, hookFailed,
		rolledBackByPlugin, duplicateKey:
		return true
	default:
		return false
	}
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case d.Unconnected(err), errors.Is(err, engine.ErrReadOnly):
		return true
	}
	return broken(err)
}

// broken reports whether a connection is of no use any more, as all others may be that lead to the same
// server.
func broken(err error) bool {
	var network net.Error
	if errors.As(err, &network) {
		return true
	}
	for _, sign := range []error{
		driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	return false
}

// Unconnected reports whether there was no connection to work with.
func (d *Database) Unconnected(err error) bool {
	var connect *connectError
	return errors.As(err, &connect)
}

// refused reports whether the server itself refused the commit, so that nothing was committed. A
// member that leaves its group while it waits for the others refuses a commit that they may have
// received.
func refused(err error) bool {
	switch number(err) {
	case 0, serverShutdown, queryInterrupted, sessionKilled, clientTimeout, hookFailed, rolledBackByPlugin:
		return false
	}
	return true
}

// readOnly reports whether the connection leads to a server that takes no changes.
func readOnly(err error) bool {
	if errors.Is(err, engine.ErrReadOnly) {
		return true
	}
	switch number(err) {
	case optionPrevents, readOnlyMode, hookFailed:
		return true
	}
	return false
}

// number returns the server's number of an error, 0 for one that is not the server's.
func number(err error) uint16 {
	var refusal *mysql.MySQLError
	if errors.As(err, &refusal) {
		return refusal.Number
	}
	return 0
}
