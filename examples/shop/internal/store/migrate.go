package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// A migration is one file of migrations/: its number, its name and its SQL.
type migration struct {
	version int64
	name    string
	sql     string
}

// migrations returns all migrations in order. Their files are named
// 0001_subject.sql, so that the order of names is that of numbers.
func migrations() ([]migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("cannot list migrations: %w", err)
	}
	var all []migration
	for i, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("cannot number migration %q: it should be number %d", name, i+1)
		}
		sql, err := migrationFiles.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read migration %q: %w", name, err)
		}
		all = append(all, migration{version: version, name: name, sql: string(sql)})
	}
	return all, nil
}

// latest returns the version of the schema that this program is written for.
func latest() (int64, error) {
	all, err := migrations()
	return int64(len(all)), err
}

// migrateLock is the key of the advisory lock that lets one migration run at a time. It is an
// arbitrary number that must never change.
const migrateLock = 7303014

// Migrate brings the schema up to date and returns the names of the migrations that it applied. It
// keeps trying to reach the database until ctx ends: one that was just created may not have its role or
// its database yet.
//
// All of it is one transaction, as PostgreSQL allows: no migration is applied in part, and there is
// nothing to clean up after a broken connection. A schema that is newer than this program is left
// unchanged, so that a rolled back release can start.
func (s *Store) Migrate(ctx context.Context, log *slog.Logger) ([]string, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		applied, err := s.migrate(ctx, all)
		var connect *pgconn.ConnectError
		if err == nil || (!retryable(err) && !errors.As(err, &connect)) {
			return applied, err
		}
		log.Info("Cannot migrate yet, trying again", "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("cannot reach the database in time: %w", err)
		case <-timer.C:
		}
	}
}

func (s *Store) migrate(ctx context.Context, all []migration) ([]string, error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer s.rollback(ctx, tx)

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
		if done[m.version] {
			continue
		}
		if _, err := tx.Exec(ctx, m.sql); err != nil {
			return nil, fmt.Errorf("cannot apply migration %q: %w", m.name, err)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO schema_migrations (version, name) VALUES ($1, $2)`, m.version, m.name); err != nil {
			return nil, fmt.Errorf("cannot record migration %q: %w", m.name, err)
		}
		applied = append(applied, m.name)
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("cannot commit migrations: %w", err)
	}
	return applied, nil
}
