package server

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
)

// Databases reconciles the databases. It drops none. The owner of a database is the user with all
// privileges on it who may grant them on. A database that cannot be set up is a problem and does not
// stop the rest. The server must be the primary.
func (s Server) Databases(ctx context.Context, desired []instance.Database, users []string) ([]instance.Problem, error) {
	var problems []instance.Problem
	err := s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
		existing, err := readDatabases(ctx, conn)
		if err != nil {
			return err
		}
		for _, d := range desired {
			statements, message := planDatabase(d, existing, users)
			for _, statement := range statements {
				_, err := conn.ExecContext(ctx, statement)
				if refused, ok := refusal(err); ok {
					message = "cannot set up database " + d.Name + ": " + refused
					break
				}
				if err != nil {
					return fmt.Errorf("cannot set up database %s: %w", d.Name, err)
				}
			}
			if message != "" {
				problems = append(problems, instance.Problem{Subject: instance.SubjectDatabase, Name: d.Name, Message: message})
			}
		}
		return nil
	})
	return problems, err
}

// readDatabases returns the users that own each database that exists.
func readDatabases(ctx context.Context, conn *sql.Conn) (map[string][]string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT schema_name, COALESCE(d.user, '') FROM information_schema.schemata s "+
		"LEFT JOIN mysql.db d ON d.db = REPLACE(s.schema_name, '_', '\\_') AND d.host = '%' AND d.grant_priv = 'Y'")
	if err != nil {
		return nil, fmt.Errorf("cannot read the databases: %w", err)
	}
	defer func() { _ = rows.Close() }()
	existing := map[string][]string{}
	for rows.Next() {
		var name, owner string
		if err := rows.Scan(&name, &owner); err != nil {
			return nil, fmt.Errorf("cannot read the databases: %w", err)
		}
		existing[name] = append(existing[name], owner)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the databases: %w", err)
	}
	return existing, nil
}

// planDatabase returns the statements for a database, in order, or why it cannot be set up.
func planDatabase(d instance.Database, existing map[string][]string, users []string) ([]string, string) {
	switch {
	case slices.Contains(instance.MySQLDatabases(), strings.ToLower(d.Name)):
		return nil, "database " + d.Name + " is MySQL's own: choose another name"
	case !slices.Contains(users, d.Owner):
		return nil, "owner " + d.Owner + " of database " + d.Name + " is not among the users"
	}
	var statements []string
	owners, exists := existing[d.Name]
	if !exists {
		statements = append(statements, "CREATE DATABASE IF NOT EXISTS "+identifier(d.Name))
	}
	on := " ON " + identifier(pattern(d.Name)) + ".* "
	if !slices.Contains(owners, d.Owner) {
		statements = append(statements, "GRANT ALL"+on+"TO "+literal(d.Owner)+"@'%' WITH GRANT OPTION")
	}
	for _, o := range owners {
		if o != "" && o != d.Owner && slices.Contains(users, o) {
			// By the right to grant an owner is found again if the first statement fails.
			statements = append(statements, "REVOKE ALL PRIVILEGES"+on+"FROM "+literal(o)+"@'%'", "REVOKE GRANT OPTION"+on+"FROM "+literal(o)+"@'%'")
		}
	}
	return statements, ""
}

// pattern returns the pattern of a grant that means one database: _ alone would mean any character
// (https://dev.mysql.com/doc/refman/9.7/en/grant.html).
func pattern(name string) string { return strings.ReplaceAll(name, "_", `\_`) }
