package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/scram"
)

// Mark is the comment on roles and databases that the managers have created or adopted.
const Mark = "managed by Storeplane"

// Login is a role with its password.
type Login struct {
	Name     string
	Password string

	// System is true for the servers' own roles. Where they exist, only their passwords are
	// reconciled.
	System bool

	// Create are the options with which a system role is created where it does not exist. Without
	// any it is not created.
	Create string

	// Executes are the functions that a system role may execute once it has been created.
	Executes []string
}

// role is a role that exists on the server.
type role struct {
	login, superuser, marked bool
	verifier                 string
}

// Roles reconciles the roles. A role that cannot be set up is a problem and does not stop the
// rest.
func (s Server) Roles(ctx context.Context, desired []Login) ([]instance.Problem, error) {
	var problems []instance.Problem
	err := s.catalog(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		existing, err := readRoles(ctx, conn)
		if err != nil {
			return err
		}
		changes, refused, err := planRoles(existing, desired)
		if err != nil {
			return err
		}
		problems = refused
		unseen(ctx, conn)
		for _, c := range changes {
			// Two statements in one string are one transaction.
			_, err := conn.Exec(ctx, c.sql)
			if message, ok := words(err); ok {
				problems = append(problems, instance.Problem{Subject: instance.SubjectUser, Name: c.role, Message: "cannot set up user " + c.role + ": " + message})
				continue
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return problems, err
}

func readRoles(ctx context.Context, conn *pgx.Conn) (map[string]role, error) {
	rows, err := conn.Query(ctx, `SELECT rolname::text, rolcanlogin, rolsuper, coalesce(rolpassword, ''),
		coalesce(shobj_description(oid, 'pg_authid'), '') = '`+Mark+`' FROM pg_authid`)
	if err != nil {
		return nil, err
	}
	existing := map[string]role{}
	var name string
	var r role
	_, err = pgx.ForEachRow(rows, []any{&name, &r.login, &r.superuser, &r.verifier, &r.marked}, func() error {
		existing[name] = r
		return nil
	})
	return existing, err
}

// unseen keeps statements, which contain verifiers of passwords, out of what extensions
// record, if those are loaded.
func unseen(ctx context.Context, conn *pgx.Conn) {
	for _, sql := range []string{"SET pg_stat_statements.track_utility = off", "SET pgaudit.log = 'none'", "SET auto_explain.log_min_duration = -1"} {
		_, _ = conn.Exec(ctx, sql)
	}
}

type change struct{ role, sql string }

// planRoles returns the changes of the roles, in order, and the problems.
func planRoles(existing map[string]role, desired []Login) ([]change, []instance.Problem, error) {
	var changes []change
	var problems []instance.Problem
	for _, d := range desired {
		has, exists := existing[d.Name]
		if message := refusal(d, has, desired); message != "" {
			problems = append(problems, instance.Problem{Subject: instance.SubjectUser, Name: d.Name, Message: message})
			continue
		}
		if d.System && (!exists && d.Create == "" || d.Password == "") {
			continue
		}
		sql, err := roleSQL(d, has, exists)
		if err != nil {
			return nil, nil, err
		}
		if sql != "" {
			changes = append(changes, change{role: d.Name, sql: sql})
		}
	}
	return append(changes, retire(existing, desired)...), problems, nil
}

// refusal returns why a user cannot be set up, or "".
func refusal(d Login, has role, desired []Login) string {
	system := slices.ContainsFunc(desired, func(o Login) bool { return o.System && o.Name == d.Name })
	switch {
	case d.System:
		return ""
	case system:
		return "user " + d.Name + " is the servers' own: choose another name"
	case has.superuser:
		return "user " + d.Name + " exists and is a superuser, so it stays as it is: choose another name"
	case d.Password == "":
		return "user " + d.Name + " has no password in the credentials"
	}
	return ""
}

func roleSQL(d Login, has role, exists bool) (string, error) {
	var options string
	if !d.System && !has.login {
		options += " LOGIN"
	}
	if !scram.Matches(has.verifier, d.Password) {
		verifier, err := scram.Verifier(d.Password)
		if err != nil {
			return "", err
		}
		// A verifier contains no quotes.
		options += " PASSWORD '" + verifier + "'"
	}
	comment := "; COMMENT ON ROLE " + quote(d.Name) + " IS '" + Mark + "'"
	switch {
	case !exists && d.System:
		statements := []string{"CREATE ROLE " + quote(d.Name) + " " + d.Create + options}
		for _, f := range d.Executes {
			statements = append(statements, "GRANT EXECUTE ON FUNCTION pg_catalog."+f+" TO "+quote(d.Name))
		}
		return strings.Join(statements, "; "), nil
	case !exists:
		return "CREATE ROLE " + quote(d.Name) + options + comment, nil
	case !d.System && !has.marked && options == "":
		return comment[2:], nil
	case !d.System && !has.marked:
		return "ALTER ROLE " + quote(d.Name) + options + comment, nil
	case options != "":
		return "ALTER ROLE " + quote(d.Name) + options, nil
	}
	return "", nil
}

// retire returns the changes for roles that are marked and no longer desired: they cannot log
// in any more. They are not dropped, since they may own objects in the databases.
func retire(existing map[string]role, desired []Login) []change {
	var changes []change
	for name, has := range existing {
		wanted := slices.ContainsFunc(desired, func(d Login) bool { return d.Name == name })
		if has.marked && has.login && !has.superuser && !wanted {
			changes = append(changes, change{role: name, sql: "ALTER ROLE " + quote(name) + " NOLOGIN"})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.role, b.role) })
	return changes
}
