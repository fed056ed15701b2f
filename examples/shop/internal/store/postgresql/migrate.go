package postgresql

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrations returns all migrations in order.
func (d *Database) Migrations() ([]engine.Migration, error) {
	return engine.ReadMigrations(migrationFiles)
}

// migrateLock is the key of the advisory lock that lets one migration run at a time. It is an
// arbitrary number that must never change.
const migrateLock = 7303014

// Migrate applies the migrations that were not applied. All of it is one transaction, as PostgreSQL
// allows: no migration is applied in part, and there is nothing to clean up after a broken
// connection.
func (d *Database) Migrate(ctx context.Context, all []engine.Migration) ([]string, error) {
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer rollback(ctx, tx)

	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, migrateLock); err != nil {
		return nil, fmt.Errorf("cannot lock the schema: %w", err)
	}
	if _, err := tx.Exec(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
			version    bigint PRIMARY KEY,
			name       text NOT NULL,
			applied_at timestamptz NOT NULL DEFAULT now()
		)`); err != nil {
		return nil, fmt.Errorf("cannot create schema_migrations: %w", err)
	}
	rows, err := tx.Query(ctx, `SELECT version FROM schema_migrations`)
	if err != nil {
		return nil, fmt.Errorf("cannot read schema_migrations: %w", err)
	}
	versions, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("cannot read schema_migrations: %w", err)
	}
	done := map[int64]bool{}
	for _, v := range versions {
		done[v] = true
	}

	var applied []string
	for _, m := range all {
		if done[m.Version] {
			continue
		}
		if _, err := tx.Exec(ctx, m.SQL); err != nil {
			return nil, fmt.Errorf("cannot apply migration %q: %w", m.Name, err)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO schema_migrations (version, name) VALUES ($1, $2)`, m.Version, m.Name); err != nil {
			return nil, fmt.Errorf("cannot record migration %q: %w", m.Name, err)
		}
		applied = append(applied, m.Name)
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("cannot commit migrations: %w", err)
	}
	return applied, nil
}
