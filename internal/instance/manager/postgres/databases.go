package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/instance"
)

// database is a database that exists on the server.
type database struct {
	owner  string
	marked bool
}

// Databases reconciles the databases and their extensions. It drops no database. Owners are
// among the users. A database that cannot be set up is a problem and does not stop the rest.
func (s Server) Databases(ctx context.Context, desired []instance.Database, users []string) ([]instance.Problem, error) {
	var problems []instance.Problem
	var ready []instance.Database
	err := s.with(ctx, maintenance, "pg_catalog", copyTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		existing, err := readDatabases(ctx, conn)
		if err != nil {
			return err
		}
		for _, d := range desired {
			message, err := setUp(ctx, conn, d, existing, users)
			if err != nil {
				return err
			}
			if message != "" {
				problems = append(problems, databaseProblem(d, message))
				continue
			}
			ready = append(ready, d)
		}
		return nil
	})
	if err != nil {
		return problems, err
	}
	for _, d := range ready {
		found, err := s.extensions(ctx, d)
		if err != nil {
			return problems, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

func databaseProblem(d instance.Database, message string) instance.Problem {
	return instance.Problem{Subject: instance.SubjectDatabase, Name: d.Name, Message: message}
}

func readDatabases(ctx context.Context, conn *pgx.Conn) (map[string]database, error) {
	rows, err := conn.Query(ctx, `SELECT datname::text, pg_get_userbyid(datdba)::text,
		coalesce(shobj_description(oid, 'pg_database'), '') = '`+Mark+`' FROM pg_database`)
	if err != nil {
		return nil, err
	}
	existing := map[string]database{}
	var name string
	var d database
	_, err = pgx.ForEachRow(rows, []any{&name, &d.owner, &d.marked}, func() error {
		existing[name] = d
		return nil
	})
	return existing, err
}

// setUp sets up a database, or returns why it cannot be set up.
func setUp(ctx context.Context, conn *pgx.Conn, d instance.Database, existing map[string]database, users []string) (string, error) {
	has, exists := existing[d.Name]
	statements, message := planDatabase(d, has, exists, users)
	for _, sql := range statements {
		_, err := conn.Exec(ctx, sql)
		if refused, ok := words(err); ok {
			return "cannot set up database " + d.Name + ": " + refused, nil
		}
		if err != nil {
			return "", err
		}
	}
	return message, nil
}

// planDatabase returns the statements for a database, in order, or why it cannot be set up.
// CREATE DATABASE cannot be part of a transaction, so the mark comes last and shows that all
// was done: from then on nothing is revoked from PUBLIC, and later grants of users are kept.
func planDatabase(d instance.Database, has database, exists bool, users []string) ([]string, string) {
	switch {
	case slices.Contains([]string{"postgres", "template0", "template1"}, d.Name):
		return nil, "database " + d.Name + " is PostgreSQL's own: choose another name"
	case !slices.Contains(users, d.Owner):
		return nil, "owner " + d.Owner + " of database " + d.Name + " is not among the users"
	}
	var statements []string
	switch {
	case !exists:
		statements = append(statements, "CREATE DATABASE "+quote(d.Name)+" OWNER "+quote(d.Owner))
	case has.owner != d.Owner:
		statements = append(statements, "ALTER DATABASE "+quote(d.Name)+" OWNER TO "+quote(d.Owner))
	}
	if !has.marked {
		statements = append(statements,
			"REVOKE ALL ON DATABASE "+quote(d.Name)+" FROM PUBLIC",
			"COMMENT ON DATABASE "+quote(d.Name)+" IS '"+Mark+"'")
	}
	return statements, ""
}

// extensions creates the extensions of a database, in the schema where tables are created by
// default.
func (s Server) extensions(ctx context.Context, d instance.Database) ([]instance.Problem, error) {
	if len(d.Extensions) == 0 {
		return nil, nil
	}
	var problems []instance.Problem
	err := s.with(ctx, d.Name, "public", copyTimeout, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT extname::text FROM pg_catalog.pg_extension")
		if err != nil {
			return err
		}
		existing, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for _, x := range d.Extensions {
			if slices.Contains(existing, x) {
				continue
			}
			_, err := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS "+quote(x))
			if err == nil {
				continue
			}
			message, ok := words(err)
			if !ok {
				return err
			}
			problems = append(problems, databaseProblem(d, "cannot create extension "+x+": "+message))
		}
		return nil
	})
	if message, ok := words(err); ok {
		// For example, the owner has forbidden connections.
		return []instance.Problem{databaseProblem(d, "cannot list extensions: "+message)}, nil
	}
	return problems, err
}
