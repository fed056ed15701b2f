package server

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/verifier"
)

// mark is the attribute of users that the managers have created or adopted.
const mark = `{"managedBy": "Storeplane"}`

// Login is a user with its password.
type Login struct{ Name, Password string }

// user is a user that exists on the server, at any host.
type user struct {
	locked, marked, powerful bool
	plugin                   string
	verifier                 []byte
}

// Users reconciles the users. One that cannot be set up is a problem and does not stop the rest. The
// server must be the primary.
func (s Server) Users(ctx context.Context, desired []Login) ([]instance.Problem, error) {
	var problems []instance.Problem
	err := s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
		existing, err := readUsers(ctx, conn)
		if err != nil {
			return err
		}
		changes, refused := planUsers(existing, desired)
		problems = refused
		for _, c := range changes {
			_, err := conn.ExecContext(ctx, c.sql)
			if message, ok := refusal(err); ok {
				problems = append(problems, instance.Problem{Subject: instance.SubjectUser, Name: c.user, Message: "cannot set up user " + c.user + ": " + message})
				continue
			}
			if err != nil {
				// The statement contains a verifier, so it is not part of the message.
				return fmt.Errorf("cannot set up user %s: %w", c.user, err)
			}
		}
		return nil
	})
	return problems, err
}

func readUsers(ctx context.Context, conn *sql.Conn) (map[string]user, error) {
	rows, err := conn.QueryContext(ctx, `SELECT user, account_locked = 'Y', plugin, authentication_string, super_priv = 'Y' OR create_user_priv = 'Y',
		COALESCE(JSON_UNQUOTE(JSON_EXTRACT(user_attributes, '$.metadata.managedBy')), '') = 'Storeplane'
		FROM mysql.user WHERE host = '%'`)
	if err != nil {
		return nil, fmt.Errorf("cannot read the users: %w", err)
	}
	defer func() { _ = rows.Close() }()
	existing := map[string]user{}
	for rows.Next() {
		var name string
		var u user
		if err := rows.Scan(&name, &u.locked, &u.plugin, &u.verifier, &u.powerful, &u.marked); err != nil {
			return nil, fmt.Errorf("cannot read the users: %w", err)
		}
		existing[name] = u
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the users: %w", err)
	}
	return existing, nil
}

type change struct{ user, sql string }

// planUsers returns the changes of the users, in order, and the problems.
func planUsers(existing map[string]user, desired []Login) ([]change, []instance.Problem) {
	var changes []change
	var problems []instance.Problem
	for _, d := range desired {
		has, exists := existing[d.Name]
		if message := unusable(d, has); message != "" {
			problems = append(problems, instance.Problem{Subject: instance.SubjectUser, Name: d.Name, Message: message})
			continue
		}
		if sql := userSQL(d, has, exists); sql != "" {
			changes = append(changes, change{d.Name, sql})
		}
	}
	return append(changes, retire(existing, desired)...), problems
}

// unusable returns why a user cannot be set up, or "".
func unusable(d Login, has user) string {
	switch {
	case d.Name == instance.MySQLSuperuser || d.Name == instance.MySQLBackupUser || d.Name == User || strings.HasPrefix(d.Name, "mysql."):
		return "user " + d.Name + " is the servers' own: choose another name"
	case has.powerful && !has.marked:
		return "user " + d.Name + " exists and administers the server, so it stays as it is: choose another name"
	case d.Password == "":
		return "user " + d.Name + " has no password in the credentials"
	}
	return ""
}

// plugin is how users authenticate.
const plugin = "caching_sha2_password"

func userSQL(d Login, has user, exists bool) string {
	same := has.plugin == plugin && verifier.Matches(has.verifier, d.Password)
	verb := "ALTER"
	switch {
	case !exists:
		verb = "CREATE"
	case same && has.marked && !has.locked:
		return ""
	}
	sql := verb + " USER " + literal(d.Name) + "@'%'"
	if !same {
		sql += " IDENTIFIED WITH " + plugin + " AS 0x" + hex.EncodeToString(verifier.New(d.Password))
	}
	return sql + " ACCOUNT UNLOCK ATTRIBUTE " + literal(mark)
}

// retire returns the changes for users that are marked and no longer desired: they cannot log in any
// more. They are not dropped, since objects may name them as their definer.
func retire(existing map[string]user, desired []Login) []change {
	var changes []change
	for name, has := range existing {
		wanted := slices.ContainsFunc(desired, func(d Login) bool { return d.Name == name })
		if has.marked && !has.locked && !wanted {
			changes = append(changes, change{name, "ALTER USER " + literal(name) + "@'%' ACCOUNT LOCK"})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.user, b.user) })
	return changes
}

// refusal returns MySQL's message, and true, if MySQL refused a statement for what it contains,
// rather than being unreachable, read-only or out of time.
func refusal(err error) (string, bool) {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return "", false
	}
	switch e.Number {
	// Too many connections, out of memory, shutdown, lock timeouts, interrupted, read-only, and
	// the group's refusal of a commit.
	case 1040, 1037, 1041, 1053, 1205, 1213, 1317, 1290, 1836, 3024, 3100, 3101:
		return "", false
	}
	return e.Message, true
}

// literal returns a string literal, whatever the server's sql_mode is: a name has no backslash.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// identifier returns a quoted identifier.
func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
