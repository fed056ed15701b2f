package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/instance"
)

// own are the server's own databases.
var own = []string{"information_schema", "performance_schema", "mysql", "sys"}

// Version returns the version of the server.
func (s *Server) Version(ctx context.Context) (string, error) {
	var version string
	err := s.db.QueryRowContext(ctx, "SELECT version()").Scan(&version)
	return version, failed(ctx, "cannot connect to the server", err)
}

// System returns the identifier of the data, which a DatabaseCluster records with the user of its backups, or
// "": servers of a group have an identifier each.
func (s *Server) System(ctx context.Context) (string, error) {
	return s.system(ctx, "CONCAT(user, '@', host) = CURRENT_USER()")
}

// SystemOf returns what System returns to a user.
func (s *Server) SystemOf(ctx context.Context, user string) (string, error) {
	return s.system(ctx, "user = ? AND host = '%'", user)
}

func (s *Server) system(ctx context.Context, where string, args ...any) (string, error) {
	var system sql.NullString
	err := s.db.QueryRowContext(ctx, "SELECT JSON_UNQUOTE(JSON_EXTRACT(attribute, ?)) FROM information_schema.user_attributes WHERE "+where,
		append([]any{"$." + instance.MySQLSystemAttribute}, args...)...).Scan(&system)
	if n := number(err); n == errNoTable || n == errUnknownTable || errors.Is(err, sql.ErrNoRows) {
		// MariaDB has no attributes of users.
		return "", nil
	}
	return system.String, failed(ctx, "cannot read what identifies the data", err)
}

// Databases returns the databases that are not the server's own.
func (s *Server) Databases(ctx context.Context) ([]string, error) {
	all, err := s.names(ctx, "cannot list the databases", "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name")
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(own, name) }), err
}

// Roles returns none: a dump names definers, which need not exist.
func (s *Server) Roles(context.Context) ([]string, error) { return nil, nil }

func (s *Server) names(ctx context.Context, what, query string, args ...any) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, failed(ctx, what, err)
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, failed(ctx, what, err)
		}
		out = append(out, name)
	}
	return out, failed(ctx, what, rows.Err())
}

// Dump dumps a database, and counts the rows in the dump.
func (s *Server) Dump(ctx context.Context, database string, w io.Writer) (map[string]int64, error) {
	charset, collation, err := s.defaults(ctx, database)
	if err != nil {
		return nil, err
	}
	// The first line of the dump sets the defaults of the database that it is restored into,
	// whatever its server and name are.
	head := fmt.Sprintf("ALTER DATABASE CHARACTER SET %s COLLATE %s;\n", charset, collation)
	if _, err := io.WriteString(w, head); err != nil {
		return nil, err
	}
	special, err := s.special(ctx, database)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--single-transaction", "--quick", "--skip-lock-tables", "--routines", "--triggers", "--events",
		// What an application has created meanwhile is not dropped by a restore.
		"--skip-add-drop-table",
		"--hex-blob", "--default-character-set=utf8mb4", "--no-tablespaces", "--max-allowed-packet=1G",
		"--ignore-table=" + database + "." + engine.LockName,
	}
	if len(special) > 0 {
		args = append(args, "--complete-insert")
	}
	t, err := s.tool(append(args, "--", database), "mariadb-dump")
	if err != nil {
		return nil, err
	}
	c := newCounter()
	t.Stdout = &normalizer{to: io.MultiWriter(c, w), special: special}
	if err := t.Run(ctx); err != nil {
		return nil, err
	}
	return c.result()
}

// defaults returns the character set and the collation of a database.
func (s *Server) defaults(ctx context.Context, database string) (string, string, error) {
	var charset, collation string
	err := s.db.QueryRowContext(ctx, "SELECT default_character_set_name, default_collation_name FROM information_schema.schemata WHERE schema_name = ?", database).Scan(&charset, &collation)
	if errors.Is(err, sql.ErrNoRows) {
		return "", "", backup.Errorf(backup.SourceUnreachable, "cannot use database %s: %w, or the user may not see it", database, engine.ErrNoDatabase)
	}
	return charset, collation, failed(ctx, "cannot read database "+database, err)
}

// Holds returns one thing that a database holds, or "".
func (s *Server) Holds(ctx context.Context, database string) (string, error) {
	if _, _, err := s.defaults(ctx, database); err != nil {
		return "", err
	}
	found, err := s.names(ctx, "cannot read database "+database, `
		(SELECT CONCAT(LOWER(table_type), ' ', table_name) FROM information_schema.tables WHERE table_schema = ? AND table_name <> '`+engine.LockName+`' LIMIT 1)
		UNION ALL
		(SELECT CONCAT(LOWER(routine_type), ' ', routine_name) FROM information_schema.routines WHERE routine_schema = ? LIMIT 1)
		UNION ALL
		(SELECT CONCAT('event ', event_name) FROM information_schema.events WHERE event_schema = ? LIMIT 1)`, database, database, database)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0], nil
}

// Restore restores a dump into an empty database, and stops at the first error.
func (s *Server) Restore(ctx context.Context, _, database string, r io.Reader) error {
	if err := s.ensure(ctx, database); err != nil {
		return err
	}
	// In binary mode no part of the dump is a command to the tool.
	t, err := s.tool([]string{"--binary-mode", "--connect-timeout=10",
		// A failed statement contains rows, which must not be logged.
		"--loose-skip-print-query-on-error", "--default-character-set=utf8mb4", "--max-allowed-packet=1G", "--database=" + database}, "mariadb")
	if err != nil {
		return err
	}
	t.Stdin = r
	return t.Run(ctx)
}

// ensure creates a database unless it exists.
func (s *Server) ensure(ctx context.Context, database string) error {
	_, _, err := s.defaults(ctx, database)
	if !errors.Is(err, engine.ErrNoDatabase) {
		return err
	}
	_, err = s.db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(database))
	return failed(ctx, "cannot create database "+database, err)
}

// Count counts the rows of each table.
func (s *Server) Count(ctx context.Context, database string) (map[string]int64, error) {
	tables, err := s.names(ctx, "cannot list the tables", "SELECT table_name FROM information_schema.tables WHERE table_schema = ? AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')", database)
	if err != nil {
		return nil, err
	}
	conn, err := s.unlimited(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	out := make(map[string]int64, len(tables))
	for _, table := range tables {
		var n int64
		if err := conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+quote(database)+"."+quote(table)).Scan(&n); err != nil {
			return nil, failed(ctx, "cannot count the rows of "+table, err)
		}
		out[table] = n
	}
	return out, nil
}

// unlimited returns a connection whose statements may take as long as they need, whatever the limits
// of the server: MySQL and MariaDB have a variable each.
func (s *Server) unlimited(ctx context.Context) (*sql.Conn, error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, failed(ctx, "cannot connect to the server", err)
	}
	for _, variable := range []string{"max_execution_time", "max_statement_time"} {
		_, err := conn.ExecContext(ctx, "SET SESSION "+variable+" = 0")
		if err != nil && number(err) != errUnknownVariable {
			_ = conn.Close()
			return nil, failed(ctx, "cannot set up the session", err)
		}
	}
	return conn, nil
}

// Query fails unless the query returns a row, and none whose first column is false, 0 or null.
func (s *Server) Query(ctx context.Context, database, query string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return failed(ctx, "cannot connect to the server", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "USE "+quote(database)); err != nil {
		return failed(ctx, "cannot use database "+database, err)
	}
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return backup.Errorf(backup.ContentDiffers, "the query failed: %w", err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil || len(columns) == 0 {
		return backup.Errorf(backup.ContentDiffers, "the query returned no column")
	}
	values := make([]any, len(columns))
	var first sql.RawBytes
	values[0] = &first
	for i := range values[1:] {
		values[i+1] = new(sql.RawBytes)
	}
	n := 0
	for rows.Next() {
		n++
		if err := rows.Scan(values...); err != nil {
			return backup.Errorf(backup.ContentDiffers, "the query failed: %w", err)
		}
		if !engine.Truthy(first) {
			return backup.Errorf(backup.ContentDiffers, "the verification query returned false in row %d", n)
		}
	}
	if err := rows.Err(); err != nil {
		return backup.Errorf(backup.ContentDiffers, "the query failed: %w", err)
	}
	if n == 0 {
		return backup.Errorf(backup.ContentDiffers, "the query returned no row")
	}
	return nil
}
