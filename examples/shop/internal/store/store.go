// Package store keeps the shop in PostgreSQL, which alone is the truth about
// carts and orders. It outlives failovers: what may be tried again is tried
// again for a while, and what may not is reported as unavailable. It knows
// nothing of HTTP and nothing of the cache.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Store is the shop's database.
type Store struct {
	pool *pgxpool.Pool
}

// Open returns the store at uri. It does not wait for the database: a backend
// that starts before its database is not ready, rather than restarted.
func Open(ctx context.Context, uri string) (*Store, error) {
	cfg, err := poolConfig(uri)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make the connection pool: %w", err)
	}
	return &Store{pool: pool}, nil
}

// Close waits for the connections in use and closes all.
func (s *Store) Close() { s.pool.Close() }

// undefinedTable is PostgreSQL's code for a table that does not exist.
const undefinedTable = "42P01"

// Ready returns why the database cannot serve the shop right now, or nil. The
// text is fit for strangers: it names no host and no user.
func (s *Store) Ready(ctx context.Context) error {
	want, err := latest()
	if err != nil {
		return err
	}
	var replica bool
	var have int64
	row := s.pool.QueryRow(ctx, `SELECT pg_is_in_recovery(), coalesce(max(version), 0) FROM schema_migrations`)
	err = row.Scan(&replica, &have)

	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == undefinedTable:
		return errors.New("the schema is missing, migrate has not run")
	case errors.As(err, &pg):
		return fmt.Errorf("the database refuses (SQLSTATE %s)", pg.Code)
	case err != nil:
		return errors.New("the database does not answer in time")
	case replica:
		// Left over from before a failover: new connections find the primary.
		s.pool.Reset()
		return errors.New("the database is read-only")
	case have < want:
		return fmt.Errorf("the schema has version %d and should have %d, migrate has not run", have, want)
	}
	return nil
}

// query runs fn, which only reads, and repeats it while that may help.
func (s *Store) query(ctx context.Context, fn func(ctx context.Context, q *pgxpool.Pool) error) error {
	return s.retry(ctx, func(ctx context.Context) error { return fn(ctx, s.pool) })
}

// write runs fn in a transaction and repeats it while that may help. A commit
// whose answer got lost may have happened: fn is run again only when it is
// repeatable, that is when a second run recognises what the first one did.
func (s *Store) write(ctx context.Context, repeatable bool, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return s.retry(ctx, func(ctx context.Context) error {
		tx, err := s.pool.Begin(ctx)
		if err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			// On a context of its own: the transaction must end though the
			// request's time may be over.
			s.rollback(ctx, tx)
			return err
		}
		err = tx.Commit(ctx)
		if err != nil && !repeatable && !refused(err) {
			return &unknownOutcomeError{err}
		}
		return err
	})
}

func (s *Store) rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	// An error here means a broken connection, which the pool discards.
	_ = tx.Rollback(ctx)
}
