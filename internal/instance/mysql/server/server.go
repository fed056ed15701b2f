// Package server talks to the MySQL server on this machine, over its socket. It executes what package
// group decides, and decides nothing.
package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Superuser is the user of the socket. It has no password: the socket is in a folder of the pod, and
// the user cannot connect over the network.
const Superuser = "root"

const (
	connectTimeout = 2 * time.Second

	// readTimeout bounds a statement that only reads. changeTimeout bounds one that waits for
	// the group or for other sessions.
	readTimeout   = 3 * time.Second
	changeTimeout = 60 * time.Second
)

// Server is the MySQL server on this machine.
type Server struct {
	// Socket is the path of the server's socket.
	Socket string
}

// with calls do with a connection. It is not kept: what holds for a session holds for one call.
func (s Server) with(ctx context.Context, timeout time.Duration, do func(context.Context, *sql.Conn) error) error {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User = "unix", s.Socket, Superuser
	config.Timeout, config.ReadTimeout, config.WriteTimeout = connectTimeout, timeout, timeout
	config.InterpolateParams = true
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return fmt.Errorf("cannot configure a connection: %w", err)
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("cannot connect to MySQL: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return do(ctx, conn)
}

// execute executes statements in order, in one session.
func (s Server) execute(ctx context.Context, timeout time.Duration, statements ...string) error {
	return s.with(ctx, timeout, func(ctx context.Context, conn *sql.Conn) error {
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("cannot execute %s: %w", statement, err)
			}
		}
		return nil
	})
}

// number returns the number of MySQL's error, or 0.
func number(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}
