// Package mysql dumps and restores databases of MariaDB and MySQL, with MariaDB's
// mariadb-dump and mariadb.
//
// A dump is one consistent snapshot of all InnoDB tables of a database. Its rows are counted as
// it is written: there is one on each line.
//
// It also copies the files of a server of MySQL, by MySQL's plugin clone: a throw-away server is what
// receives them.
package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// A Server is a server of MariaDB or MySQL.
type Server struct {
	conn    engine.Connection
	socket  string
	private engine.Private
	options string
	db      *sql.DB
	log     io.Writer
	remote  *engine.Remote
}

var _ engine.ThrowAway = &Server{}

// Open returns a Server without connecting to it: the first use connects.
func Open(c engine.Connection, log io.Writer) (*Server, error) { return open(c, "", log) }

// open opens a server at a socket, or by the connection's host if socket is "".
func open(c engine.Connection, socket string, log io.Writer) (*Server, error) {
	s := &Server{conn: c, socket: socket, log: log}
	var err error
	if s.private, err = engine.NewPrivate(); err != nil {
		return nil, err
	}
	if s.options, err = s.private.Write("client.cnf", s.optionFile()); err != nil {
		s.private.Close()
		return nil, err
	}
	config, err := s.config()
	if err != nil {
		s.private.Close()
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		s.private.Close()
		return nil, backup.Errorf(backup.InvalidTask, "cannot read the connection: %w", err)
	}
	s.db = sql.OpenDB(connector)
	return s, nil
}

// Close closes all connections, and removes the file with the password.
func (s *Server) Close() {
	_ = s.db.Close()
	s.private.Close()
}

// Failed explains an error of a throw-away server with the server's own output.
func (s *Server) Failed(err error) error {
	if s.remote == nil || err == nil {
		return err
	}
	return s.remote.Failed(err)
}

const dialWithin = 10 * time.Second

// config returns the configuration of the driver.
func (s *Server) config() (*mysql.Config, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd = s.conn.User, s.conn.Password
	c.Timeout = dialWithin
	c.AllowNativePasswords = true
	c.Logger = quiet{}
	if s.socket != "" {
		c.Net, c.Addr = "unix", s.socket
		return c, nil
	}
	c.Net, c.Addr = "tcp", net.JoinHostPort(s.conn.Host("3306"))
	switch {
	case s.conn.CA != "":
		pem, err := os.ReadFile(s.conn.CA)
		if err != nil {
			return nil, backup.Errorf(backup.InvalidTask, "cannot read the connection's ca.crt: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, backup.Errorf(backup.InvalidTask, "the connection's ca.crt has no certificate")
		}
		host, _ := s.conn.Host("")
		c.TLS = &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	case tlsOff(s.conn):
	default:
		// TLS is used if the server supports it.
		c.TLSConfig = "preferred"
	}
	return c, nil
}

// tlsOff reports whether the URI turns TLS off, by the parameter of any common driver.
func tlsOff(c engine.Connection) bool {
	for _, name := range []string{"ssl-mode", "sslmode", "tls", "useSSL"} {
		switch strings.ToLower(c.Params.Get(name)) {
		case "disabled", "disable", "false":
			return true
		}
	}
	return false
}

// quiet is a logger that discards all: errors are returned and need not be logged too.
type quiet struct{}

func (quiet) Print(...any) {}

// optionFile returns the option file of MariaDB's tools.
func (s *Server) optionFile() string {
	var b strings.Builder
	b.WriteString("[client]\n")
	set := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s=\"%s\"\n", name, optionEscape.Replace(value))
		}
	}
	set("user", s.conn.User)
	set("password", s.conn.Password)
	// Neither a dump nor a server may request files of the pod, which include credentials.
	b.WriteString("default-character-set=utf8mb4\nloose-local-infile=0\n")
	if s.socket != "" {
		set("socket", s.socket)
		return b.String()
	}
	host, port := s.conn.Host("3306")
	b.WriteString("protocol=tcp\n")
	set("host", host)
	set("port", port)
	switch {
	case s.conn.CA != "":
		set("ssl-ca", s.conn.CA)
		b.WriteString("ssl-verify-server-cert\n")
	case tlsOff(s.conn):
		b.WriteString("skip-ssl\n")
	default:
		// Newer clients insist on a certificate that they can verify.
		b.WriteString("loose-skip-ssl-verify-server-cert\n")
	}
	return b.String()
}

// optionEscape escapes a value in quotes.
var optionEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`)

// tool returns a tool of MariaDB. The file with the password has to be its first argument.
func (s *Server) tool(args []string, names ...string) (engine.Tool, error) {
	path, err := engine.Look(names...)
	if err != nil {
		return engine.Tool{}, err
	}
	return engine.Tool{Name: path, Args: append([]string{"--defaults-file=" + s.options}, args...), Log: s.log, Reason: wordsReason}, nil
}

// quote quotes a name in SQL.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// failed adds what was attempted, and the reason, to an error of the server.
func failed(ctx context.Context, what string, err error) error {
	if err == nil || backup.ReasonOf(err) != "" {
		return err
	}
	err = fmt.Errorf("%s: %w", what, err)
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // the cause is not wrapped
		return backup.WithReason(backup.Interrupted, err)
	}
	return backup.WithReason(reason(err), err)
}

func reason(err error) backup.Reason {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return backup.SourceUnreachable
	}
	return codeReason(e.Number)
}

// codeReason returns the reason of a server's error number.
func codeReason(code uint16) backup.Reason {
	switch code {
	// Access is denied to the server, a database, a table or a column, for lack of a privilege,
	// or the user's authentication plugin is not known.
	case 1044, 1045, 1142, 1143, 1227, 1370, 1419, 1698, 1524:
		return backup.SourceDenied
	// Too many connections, shutting down, no such database yet, or the connection was lost.
	case 1040, 1053, 1049, 1203, 1226, 2002, 2003, 2005, 2006, 2013, 2026:
		return backup.SourceUnreachable
	// A table of the name exists.
	case 1050:
		return backup.TargetNotEmpty
	}
	return backup.ToolFailed
}

// wordsReason returns the reason of a tool's error output, or "".
func wordsReason(words string) backup.Reason {
	for _, code := range []uint16{1044, 1050, 1045, 1142, 1143, 1227, 1370, 1419, 1698, 1524, 1040, 1053, 1049, 1203, 1226, 2002, 2003, 2005, 2006, 2013, 2026} {
		if engine.Contains(words, fmt.Sprintf("error: %d:", code), fmt.Sprintf("ERROR %d ", code), fmt.Sprintf("Error %d:", code), fmt.Sprintf("(%d)", code)) {
			return codeReason(code)
		}
	}
	return ""
}
