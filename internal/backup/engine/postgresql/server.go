// Package postgresql dumps and restores databases of PostgreSQL, by its own pg_dump and
// pg_restore.
//
// A dump and its numbers of rows come from one snapshot, so they are exact whatever is written
// meanwhile. A dump contains owners and privileges, but a restore leaves them out, because the
// roles of one server need not exist on another. All objects belong to the user that restores.
package postgresql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// maintenance is a database that every server has.
const maintenance = "postgres"

// A Server is a server of PostgreSQL.
type Server struct {
	conn     engine.Connection
	private  engine.Private
	passfile string
	log      io.Writer
	remote   *engine.Remote
}

var _ engine.ThrowAway = &Server{}

// Open returns a Server without connecting to it: each use connects anew.
func Open(c engine.Connection, log io.Writer) (*Server, error) {
	s := &Server{conn: c, log: log}
	s.conn.Params = url.Values{}
	maps.Copy(s.conn.Params, c.Params)
	s.conn.Params.Del("sslpassword")
	if c.CA != "" {
		s.conn.Params.Set("sslrootcert", c.CA)
		if !s.conn.Params.Has("sslmode") {
			s.conn.Params.Set("sslmode", "verify-full")
		}
	} else if s.conn.Params.Get("sslrootcert") != "system" {
		// The parameter names a file of another machine.
		s.conn.Params.Del("sslrootcert")
	}
	// The loss of the server is detected within a minute.
	for k, v := range map[string]string{"connect_timeout": "10", "keepalives_idle": "20", "keepalives_interval": "10", "keepalives_count": "3"} {
		if !s.conn.Params.Has(k) {
			s.conn.Params.Set(k, v)
		}
	}
	var err error
	if s.private, err = engine.NewPrivate(); err != nil {
		return nil, err
	}
	if s.passfile, err = s.private.Write("pgpass", "*:*:*:*:"+escape.Replace(c.Password)+"\n"); err != nil {
		s.private.Close()
		return nil, err
	}
	return s, nil
}

// escape escapes a field of a password file.
var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// Close removes the file with the password.
func (s *Server) Close() {
	s.private.Close()
}

// libpqOnly are parameters of libpq that pgx would send to the server as settings.
var libpqOnly = []string{"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssencmode", "sslcompression", "sslcrl", "channel_binding"}

// connect connects to a database.
func (s *Server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	c := s.conn
	c.Params = url.Values{}
	maps.Copy(c.Params, s.conn.Params)
	for _, p := range libpqOnly {
		c.Params.Del(p)
	}
	config, err := pgx.ParseConfig(c.URI("postgresql", database, nil))
	if err != nil {
		// The parser's own error contains the URI.
		return nil, backup.Errorf(backup.InvalidTask, "cannot read the connection: a parameter of its uri is wrong")
	}
	config.Password = s.conn.Password
	config.RuntimeParams["application_name"] = application
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, failed(ctx, "cannot connect to database "+database, err)
	}
	return conn, nil
}

// application is the name that administrators find in the list of sessions.
const application = "storeplane-backup"

// with calls do with a connection to a database, and closes it.
func (s *Server) with(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := s.connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

// tool returns a tool of PostgreSQL on a database. The password is in a file.
func (s *Server) tool(name, database string, args ...string) (engine.Tool, error) {
	path, err := engine.Look(name)
	if err != nil {
		return engine.Tool{}, err
	}
	return engine.Tool{
		Name: path,
		Args: append(args, "--no-password", "--dbname="+s.conn.URI("postgresql", database, nil)),
		Env:  []string{"PGPASSFILE=" + s.passfile, "PGAPPNAME=" + application, "LC_ALL=C.UTF-8"},
		Log:  s.log, Reason: wordsReason,
	}, nil
}

// System returns the system identifier, which initdb has generated.
func (s *Server) System(ctx context.Context) (string, error) {
	var system string
	err := s.with(ctx, maintenance, func(c *pgx.Conn) error {
		err := c.QueryRow(ctx, "SELECT system_identifier::text FROM pg_catalog.pg_control_system()").Scan(&system)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42501" {
			return nil // a provider's server may not let its users call this
		}
		return failed(ctx, "cannot read the system identifier", err)
	})
	return system, err
}

// missing reports whether err means that the database does not exist.
func missing(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "3D000"
}

// failed adds what was attempted, and the reason, to an error of the server.
func failed(ctx context.Context, what string, err error) error {
	if err == nil || backup.ReasonOf(err) != "" {
		return err
	}
	err = fmt.Errorf("%s: %w", what, inWords(err))
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // the cause is not wrapped
		return backup.WithReason(backup.Interrupted, err)
	}
	return backup.WithReason(reason(err), err)
}

// inWords removes what pgx adds to a server's error: the whole connection.
func inWords(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		if inner := e.Unwrap(); inner != nil {
			return inner
		}
	}
	return err
}

func reason(err error) backup.Reason {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return backup.SourceUnreachable
	}
	switch {
	// Invalid authorization, and insufficient privilege.
	case strings.HasPrefix(e.Code, "28"), e.Code == "42501":
		return backup.SourceDenied
	// The server is shutting down, starting, out of connections or lost, or the database does not
	// exist yet.
	case strings.HasPrefix(e.Code, "57P"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "08"), e.Code == "3D000":
		return backup.SourceUnreachable
	}
	return backup.ToolFailed
}

// wordsReason returns the reason of a tool's error output, or "".
func wordsReason(words string) backup.Reason {
	switch {
	case engine.Contains(words, "password authentication failed", "no pg_hba.conf entry", "permission denied", "no password supplied", "must be owner", "query would be affected by row-level security"):
		return backup.SourceDenied
	case engine.Contains(words, "server version mismatch", "unsupported version"):
		return backup.InvalidTask
	case engine.Contains(words, "already exists"):
		return backup.TargetNotEmpty
	case engine.Contains(words, "server closed the connection", "terminating connection", "could not connect", "connection to server", "the database system is", "could not receive data", "SSL connection has been closed", "SSL SYSCALL error", "lost synchronization"):
		return backup.SourceUnreachable
	}
	return ""
}
