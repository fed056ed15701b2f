// Package postgresql dumps and restores databases of PostgreSQL, with its own
// pg_dump and pg_restore.
//
// A dump and the numbers of rows that go with it come from one snapshot, so they
// are exact whatever is written meanwhile. A dump holds owners and privileges; a
// restore leaves them out, and everything belongs to whom the restore connects as:
// the roles of one server need not exist on another.
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

// A Server of PostgreSQL.
type Server struct {
	conn     engine.Connection
	private  engine.Private
	passfile string
	log      io.Writer
	remote   *engine.Remote
}

var _ engine.ThrowAway = &Server{}

// Open a server. Nothing is reached before it is used.
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
		// It names a file of another machine.
		s.conn.Params.Del("sslrootcert")
	}
	// A server that is gone is noticed within a minute.
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

// escape of a field of a password file.
var escape = strings.NewReplacer(`\`, `\\`, `:`, `\:`)

// Close the Server.
func (s *Server) Close() {
	s.private.Close()
}

// libpq's own parameters, which pgx takes for the server's.
var libpqOnly = []string{"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout", "gssencmode", "sslcompression", "sslcrl", "channel_binding"}

// connect to a database.
func (s *Server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	c := s.conn
	c.Params = url.Values{}
	maps.Copy(c.Params, s.conn.Params)
	for _, p := range libpqOnly {
		c.Params.Del(p)
	}
	config, err := pgx.ParseConfig(c.URI("postgresql", database, nil))
	if err != nil {
		// The parser's own error names the URI.
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

// application that administrators see in their list of sessions.
const application = "storeplane-backup"

// with a connection to a database.
func (s *Server) with(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := s.connect(ctx, database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

// tool of PostgreSQL on a database. The password is in a file.
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

// missing tells whether err says that there is no such database.
func missing(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "3D000"
}

// failed puts an error of the server in words, with its reason.
func failed(ctx context.Context, what string, err error) error {
	if err == nil || backup.ReasonOf(err) != "" {
		return err
	}
	err = fmt.Errorf("%s: %w", what, inWords(err))
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // it is the cause itself
		return backup.WithReason(backup.Interrupted, err)
	}
	return backup.WithReason(reason(err), err)
}

// inWords leaves out what pgx puts around a server's error: the whole connection.
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
	// It shuts down, starts up, has no room for connections, or has no such
	// database yet.
	case strings.HasPrefix(e.Code, "57P"), strings.HasPrefix(e.Code, "53"), strings.HasPrefix(e.Code, "08"), e.Code == "3D000":
		return backup.SourceUnreachable
	}
	return backup.ToolFailed
}

// wordsReason of what a tool says.
func wordsReason(words string) backup.Reason {
	switch {
	case engine.Contains(words, "password authentication failed", "no pg_hba.conf entry", "permission denied", "no password supplied", "must be owner", "query would be affected by row-level security"):
		return backup.SourceDenied
	case engine.Contains(words, "server version mismatch", "unsupported version"):
		return backup.InvalidTask
	case engine.Contains(words, "server closed the connection", "terminating connection", "could not connect", "connection to server", "the database system is", "could not receive data", "SSL connection has been closed", "SSL SYSCALL error", "lost synchronization"):
		return backup.SourceUnreachable
	}
	return ""
}
