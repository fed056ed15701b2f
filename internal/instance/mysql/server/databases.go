package server

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
)

// Databases reconciles the databases. It drops none. The owner of a database is the user with all
// privileges on it who may grant them on. A database that cannot be set up is a problem and does not
// stop the rest. Every database that is not MySQL's own can be dumped, those too that are not desired any
// more, once there is the user of Dumper. The server must be the primary.
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
		return dump(ctx, conn)
	})
	return problems, err
}

// dump lets the user of backups read all databases, if there is one.
func dump(ctx context.Context, conn *sql.Conn) error {
	var users int
	if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM mysql.user WHERE user = ? AND host = ?", dumper.name, dumper.host).Scan(&users); err != nil {
		return fmt.Errorf("cannot find the user of %s: %w", dumper.of, err)
	}
	if users == 0 {
		return nil
	}
	existing, err := readDatabases(ctx, conn)
	if err != nil {
		return err
	}
	for _, statement := range planDumps(existing) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("cannot let backups read a database: %w", err)
		}
	}
	return nil
}

// database is a database that exists.
type database struct {
	// owners are the users that own it, and dumped is true if it can be dumped.
	owners []string
	dumped bool
}

// readDatabases returns the databases that exist, by name.
func readDatabases(ctx context.Context, conn *sql.Conn) (map[string]database, error) {
	rows, err := conn.QueryContext(ctx, "SELECT schema_name, COALESCE(d.user, ''), COALESCE(d.grant_priv, 'N') = 'Y', COALESCE(d.select_priv = 'Y' AND d.show_view_priv = 'Y' AND d.trigger_priv = 'Y' AND d.event_priv = 'Y', FALSE) "+
		"FROM information_schema.schemata s LEFT JOIN mysql.db d ON d.db = REPLACE(s.schema_name, '_', '\\_') AND d.host = '%'")
	if err != nil {
		return nil, fmt.Errorf("cannot read the databases: %w", err)
	}
	defer func() { _ = rows.Close() }()
	existing := map[string]database{}
	for rows.Next() {
		var name, user string
		var grants, dumps bool
		if err := rows.Scan(&name, &user, &grants, &dumps); err != nil {
			return nil, fmt.Errorf("cannot read the databases: %w", err)
		}
		d := existing[name]
		switch {
		case user == instance.MySQLBackupUser:
			d.dumped = dumps
		case grants:
			d.owners = append(d.owners, user)
		}
		existing[name] = d
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot read the databases: %w", err)
	}
	return existing, nil
}

// planDatabase returns the statements for a database, in order, or why it cannot be set up.
func planDatabase(d instance.Database, existing map[string]database, users []string) ([]string, string) {
	switch {
	case slices.Contains(instance.MySQLDatabases(), strings.ToLower(d.Name)):
		return nil, "database " + d.Name + " is MySQL's own: choose another name"
	case !slices.Contains(users, d.Owner):
		return nil, "owner " + d.Owner + " of database " + d.Name + " is not among the users"
	}
	var statements []string
	have, exists := existing[d.Name]
	if !exists {
		statements = append(statements, "CREATE DATABASE IF NOT EXISTS "+identifier(d.Name))
	}
	on := " ON " + identifier(pattern(d.Name)) + ".* "
	if !slices.Contains(have.owners, d.Owner) {
		statements = append(statements, "GRANT ALL"+on+"TO "+literal(d.Owner)+"@'%' WITH GRANT OPTION")
	}
	for _, o := range have.owners {
		if o != d.Owner && slices.Contains(users, o) {
			// By the right to grant an owner is found again if the first statement fails.
			statements = append(statements, "REVOKE ALL PRIVILEGES"+on+"FROM "+literal(o)+"@'%'", "REVOKE GRANT OPTION"+on+"FROM "+literal(o)+"@'%'")
		}
	}
	return statements, ""
}

// planDumps returns the statements that let backups read each database that is not MySQL's own, sorted.
func planDumps(existing map[string]database) []string {
	var statements []string
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		if !existing[name].dumped && !slices.Contains(instance.MySQLDatabases(), strings.ToLower(name)) {
			statements = append(statements, "GRANT "+dumps+" ON "+identifier(pattern(name))+".* TO "+literal(instance.MySQLBackupUser)+"@"+literal(dumper.host))
		}
	}
	return statements
}

// pattern returns the pattern of a grant that means one database: _ alone would mean any character
// (https://dev.mysql.com/doc/refman/9.7/en/grant.html).
func pattern(name string) string { return strings.ReplaceAll(name, "_", `\_`) }
