package mysql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrations returns all migrations in order. In their files, a semicolon at the end of a line ends
// a statement.
func (d *Database) Migrations() ([]engine.Migration, error) {
	return engine.ReadMigrations(migrationFiles)
}

// migrateLock begins the name of the lock that lets one migration of a database run at a time. It must
// never change.
const migrateLock = "shop.migrate."

var errNotLocked = errors.New("the server has ended the wait for the lock")

// Migrate applies the migrations that were not applied. MySQL commits each statement that changes a
// schema: a migration that was cut off in the middle is run again, and its statements leave alone
// what exists.
func (d *Database) Migrate(ctx context.Context, all []engine.Migration) ([]string, error) {
	var applied []string
	err := d.use(ctx, func(conn *sql.Conn) error {
		// The lock ends with its connection.
		defer discard(conn)
		var err error
		applied, err = migrate(ctx, conn, all)
		return err
	})
	return applied, err
}

func migrate(ctx context.Context, conn *sql.Conn, all []engine.Migration) ([]string, error) {
	// It waits until ctx ends, which closes the connection. Locks are the server's, and have at most 64
	// characters.
	var locked sql.NullBool
	err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(CONCAT(?, LEFT(DATABASE(), 40)), -1)`, migrateLock).Scan(&locked)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot lock the schema: %w", err)
	case !locked.Bool:
		return nil, fmt.Errorf("cannot lock the schema: %w", errNotLocked)
	}
	if _, err := conn.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
			version    bigint PRIMARY KEY,
			name       varchar(255) NOT NULL,
			applied_at datetime(6) NOT NULL DEFAULT now(6)
		) CHARACTER SET utf8mb4`); err != nil {
		return nil, fmt.Errorf("cannot create schema_migrations: %w", err)
	}
	done, err := versions(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("cannot read schema_migrations: %w", err)
	}
	var applied []string
	for _, m := range all {
		if done[m.Version] {
			continue
		}
		for statement := range strings.SplitSeq(strings.TrimSpace(m.SQL), ";\n") {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return applied, fmt.Errorf("cannot apply migration %q: %w", m.Name, err)
			}
		}
		if _, err := conn.ExecContext(ctx, `INSERT INTO schema_migrations (version, name) VALUES (?, ?)`, m.Version, m.Name); err != nil {
			return applied, fmt.Errorf("cannot record migration %q: %w", m.Name, err)
		}
		applied = append(applied, m.Name)
	}
	return applied, nil
}

// versions returns the versions that were applied.
func versions(ctx context.Context, conn *sql.Conn) (map[int64]bool, error) {
	rows, err := conn.QueryContext(ctx, `SELECT version FROM schema_migrations`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	done := map[int64]bool{}
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return nil, err
		}
		done[version] = true
	}
	return done, rows.Err()
}
