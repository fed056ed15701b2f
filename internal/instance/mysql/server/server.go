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

	"github.com/storeplane/storeplane/internal/instance"
)

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

// session are the variables of each session. A statement that waits for a lock ends before its caller
// gives up, since the server would go on with it. Statements contain verifiers of passwords, so none is
// in the logs of statements. What statements mean depends on no option.
var session = map[string]string{
	"lock_wait_timeout": "30", "innodb_lock_wait_timeout": "30", "sql_log_off": "1", "long_query_time": "31536000",
	"sql_mode": "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'",
}

// Pool returns connections, which the caller closes: a statement may take as long as the timeout.
func (s Server) Pool(timeout time.Duration) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User = "unix", s.Socket, instance.MySQLSuperuser
	config.Timeout, config.ReadTimeout, config.WriteTimeout = connectTimeout, timeout, timeout
	config.InterpolateParams = true
	config.Params = session
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("cannot configure a connection: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// with calls do with a connection. It is not kept: what holds for a session holds for one call.
func (s Server) with(ctx context.Context, timeout time.Duration, do func(context.Context, *sql.Conn) error) error {
	db, err := s.Pool(timeout)
	if err != nil {
		return err
	}
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

// Ping fails unless the server answers.
func (s Server) Ping(ctx context.Context) error { return s.execute(ctx, readTimeout, "DO 0") }

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

// Answers reports whether an error is one that the server itself has returned.
func Answers(err error) bool {
	_, ok := errors.AsType[*mysql.MySQLError](err)
	return ok
}
