package server

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/verifier"
)

// ownUser is a user of a program beside the server, which connects by a password.
type ownUser struct {
	// of is whose user it is, for messages.
	of, name, host string

	// connections is how many it may have at once.
	connections int

	// grants are its privileges on all databases, before "TO", and dynamic those of them that
	// mysql.global_grants lists.
	grants  []string
	dynamic []string

	// identifies is true if an attribute of the user identifies the data.
	identifies bool

	// receives is true if it receives binary logs, for which its privilege is not dynamic.
	receives bool
}

var (
	// exporter may read statistics, and no data. It is in the server's pod, and does not see the socket,
	// over which every client is the superuser.
	exporter = ownUser{of: "the exporter", name: instance.UserMonitoring, host: "127.0.0.1", connections: 3, grants: []string{
		"PROCESS, REPLICATION CLIENT ON *.*", "SELECT ON performance_schema.*",
	}}

	// dumper dumps databases. What it may read of each is granted with the database (dumps); for the text of
	// a routine there is no privilege on a database
	// (https://dev.mysql.com/doc/refman/9.7/en/privileges-provided.html#priv_show-routine). Physical backups
	// copy the server as this user, by the clone plugin
	// (https://dev.mysql.com/doc/refman/9.7/en/clone-plugin-remote.html), and it receives the binary logs that are
	// archived.
	dumper = ownUser{
		of: "the backups", name: instance.MySQLBackupUser, host: "%", connections: 10, identifies: true,
		grants: []string{"SHOW_ROUTINE, BACKUP_ADMIN ON *.*", "REPLICATION SLAVE ON *.*"}, dynamic: []string{"SHOW_ROUTINE", "BACKUP_ADMIN"}, receives: true,
	}
)

// dumps are the privileges on a database with which dumper dumps it.
const dumps = "SELECT, SHOW VIEW, TRIGGER, EVENT"

// Monitoring brings about the user of the metrics exporter with its password. The server must be the
// primary.
func (s Server) Monitoring(ctx context.Context, password string) error {
	return s.own(ctx, exporter, password)
}

// Dumper brings about the user that dumps databases with its password. The server must be the primary.
func (s Server) Dumper(ctx context.Context, password string) error {
	return s.own(ctx, dumper, password)
}

func (s Server) own(ctx context.Context, u ownUser, password string) error {
	if password == "" {
		return errors.New("the credentials have no password for the user of " + u.of)
	}
	return s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
		var has []byte
		var locked bool
		err := conn.QueryRowContext(ctx, "SELECT authentication_string, account_locked = 'Y' FROM mysql.user WHERE user = ? AND host = ?", u.name, u.host).Scan(&has, &locked)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("cannot find the user of %s: %w", u.of, err)
		}
		exists := err == nil && !locked && verifier.Matches(has, password)
		if granted, err := isGranted(ctx, conn, u); err != nil || exists && granted {
			return err
		}
		user := literal(u.name) + "@" + literal(u.host)
		create := "CREATE USER IF NOT EXISTS " + user + " ACCOUNT LOCK"
		if u.identifies {
			// A user that exists keeps its attribute.
			create += " ATTRIBUTE " + newSystem()
		}
		statements := []string{create}
		for _, g := range u.grants {
			statements = append(statements, "GRANT "+g+" TO "+user)
		}
		// The password comes last: by it a user is known to have all else.
		statements = append(statements, fmt.Sprintf("ALTER USER %s IDENTIFIED WITH %s AS 0x%s WITH MAX_USER_CONNECTIONS %d ACCOUNT UNLOCK",
			user, plugin, hex.EncodeToString(verifier.New(password)), u.connections))
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				// The statement contains a verifier, so it is not part of the message.
				return fmt.Errorf("cannot set up the user of %s: %w", u.of, err)
			}
		}
		return nil
	})
}

// renewFor is how long a primary that has just founded its group may refuse to write.
const renewFor = 10 * time.Second

// RenewSystem gives the data another identifier, in all servers of the group: what is written from now on does not continue
// all that was archived before. With from, only if that is the present one. It reports whether it has, or may have if there is
// an error. The server must be the primary. It is no error if the user of backups, which carries the identifier, does not exist.
func (s Server) RenewSystem(ctx context.Context, from string) (sent bool, err error) {
	until := time.Now().Add(renewFor)
	for {
		err := s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
			statement, err := renewal(ctx, conn, from)
			if err != nil || statement == "" {
				return err
			}
			sent = true
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("cannot give the data another identifier: %w", err)
			}
			return nil
		})
		if err == nil || time.Now().After(until) {
			return sent, err
		}
		select {
		case <-ctx.Done():
			return sent, err
		case <-time.After(time.Second):
		}
	}
}

// renewal returns the statement that gives the data another identifier, or "" where the user that carries it does not
// exist, or has another one than from.
func renewal(ctx context.Context, conn *sql.Conn, from string) (string, error) {
	var n int
	err := conn.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.user_attributes WHERE user = ? AND host = ? AND (? = '' OR JSON_UNQUOTE(JSON_EXTRACT(attribute, ?)) = ?)",
		dumper.name, dumper.host, from, "$."+instance.MySQLSystemAttribute, from).Scan(&n)
	if err != nil {
		return "", fmt.Errorf("cannot find the user of %s: %w", dumper.of, err)
	}
	if n == 0 {
		return "", nil
	}
	return "ALTER USER " + literal(dumper.name) + "@" + literal(dumper.host) + " ATTRIBUTE " + newSystem(), nil
}

// newSystem returns the attribute with a new identifier of the data, as a literal.
func newSystem() string {
	return literal(`{"` + instance.MySQLSystemAttribute + `": "` + rand.Text() + `"}`)
}

// isGranted reports whether a user has the privileges by which an older release's is known to lack some.
func isGranted(ctx context.Context, conn *sql.Conn, u ownUser) (bool, error) {
	for _, privilege := range u.dynamic {
		var n int
		err := conn.QueryRowContext(ctx, "SELECT count(*) FROM mysql.global_grants WHERE user = ? AND host = ? AND priv = ?", u.name, u.host, privilege).Scan(&n)
		if err != nil {
			return false, fmt.Errorf("cannot read the privileges of the user of %s: %w", u.of, err)
		}
		if n == 0 {
			return false, nil
		}
	}
	var n int
	err := conn.QueryRowContext(ctx, "SELECT count(*) FROM mysql.user WHERE user = ? AND host = ? AND repl_slave_priv = 'Y'", u.name, u.host).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("cannot read the privileges of the user of %s: %w", u.of, err)
	}
	return n > 0 || !u.receives, nil
}
