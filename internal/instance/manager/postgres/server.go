package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Superuser is the superuser of every server. The operating system's user of the same name may
// connect as it over the socket.
const Superuser = "postgres"

// maintenance is the database for statements that belong to no database.
const maintenance = "postgres"

const (
	connectTimeout   = 5 * time.Second
	statementTimeout = 15 * time.Second
	// copyTimeout is for statements that copy or write files.
	copyTimeout = 2 * time.Minute
)

// Server is the PostgreSQL server on this machine.
type Server struct {
	// Socket is the directory of the socket.
	Socket string
	Port   uint16
}

// with calls do with a connection to a database, in which unqualified names are those of the
// schema.
func (s Server) with(ctx context.Context, database, schema string, timeout time.Duration, do func(context.Context, *pgx.Conn) error) error {
	config, err := pgx.ParseConfig("")
	if err != nil {
		return fmt.Errorf("cannot configure a connection: %w", err)
	}
	config.Host, config.Port = s.Socket, s.Port
	config.User, config.Password, config.Database = Superuser, "", database
	config.TLSConfig, config.Fallbacks = nil, nil
	config.ConnectTimeout = connectTimeout
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.RuntimeParams = map[string]string{
		"application_name":  "instance-manager",
		"search_path":       schema,
		"statement_timeout": strconv.FormatInt(timeout.Milliseconds(), 10),
		"lock_timeout":      "5000",
		// A standby that is away must not block this: it may need these very passwords to come
		// back.
		"synchronous_commit": "local",
		// Statements contain verifiers of passwords, which must not be in the log.
		"log_statement":               "none",
		"log_min_duration_statement":  "-1",
		"log_min_duration_sample":     "-1",
		"log_transaction_sample_rate": "0",
		"log_min_error_statement":     "panic",
	}
	connecting, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, config)
	if err != nil {
		return fmt.Errorf("cannot connect to database %s: %w", database, err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	// The server's own timeouts end a statement. This one is for when they do not.
	ctx, cancel = context.WithTimeout(ctx, timeout+connectTimeout)
	defer cancel()
	return do(ctx, conn)
}

// catalog calls do with a connection for statements about the whole server.
func (s Server) catalog(ctx context.Context, do func(context.Context, *pgx.Conn) error) error {
	return s.with(ctx, maintenance, "pg_catalog", statementTimeout, do)
}

// Checkpoint writes what is in memory to the disk, so that the stop that follows is short.
func (s Server) Checkpoint(ctx context.Context) error {
	return s.with(ctx, maintenance, "pg_catalog", copyTimeout, run("CHECKPOINT"))
}

// Reload reloads the configuration files, and certificates with them.
func (s Server) Reload(ctx context.Context) error {
	return s.catalog(ctx, run("SELECT pg_reload_conf()"))
}

// Receiving reports whether this standby is connected to its primary.
func (s Server) Receiving(ctx context.Context) (bool, error) {
	var n int
	err := s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_wal_receiver").Scan(&n)
	})
	return n > 0, err
}

// Programs contains the directories in which the server's programs and libraries are
// installed.
type Programs struct{ BinDir, LibDir string }

// Programs returns the directories of this server.
func (s Server) Programs(ctx context.Context) (Programs, error) {
	var p Programs
	err := s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT max(setting) FILTER (WHERE name = 'BINDIR'), max(setting) FILTER (WHERE name = 'PKGLIBDIR')
			FROM pg_config()`).Scan(&p.BinDir, &p.LibDir)
	})
	return p, err
}

func run(sql string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// words returns PostgreSQL's message, and true, if PostgreSQL refused a statement for what it
// contains, rather than being unreachable or out of time.
func words(err error) (string, bool) {
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || len(refusal.Code) < 2 {
		return "", false
	}
	switch refusal.Code[:2] {
	// Out of resources, ended by an operator or a timeout, in use: the cause passes.
	case "08", "40", "53", "55", "57", "58", "XX":
		return "", false
	}
	return refusal.Message, true
}
