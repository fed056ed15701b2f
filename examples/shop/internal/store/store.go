// Package store stores the shop in PostgreSQL, which is authoritative for carts and orders. It
// survives failovers: what can be repeated safely is retried for 10 s, and the rest is reported as
// unavailable. It depends neither on HTTP nor on the cache.
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

// Open returns the store at uri. It does not wait for the database: a backend that starts before
// its database is unready, and is not restarted.
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

// Ready returns why the database cannot serve the shop now, or nil. The text may be public: it
// contains no host and no user.
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
		// These connections are from before a failover: new ones reach the primary.
		s.pool.Reset()
		return errors.New("the database is read-only")
	case have < want:
		return fmt.Errorf("the schema has version %d and should have %d, migrate has not run", have, want)
	}
	return nil
}

// query runs fn, which only reads, and retries it while that may help.
func (s *Store) query(ctx context.Context, fn func(ctx context.Context, q *pgxpool.Pool) error) error {
	return s.retry(ctx, func(ctx context.Context) error { return fn(ctx, s.pool) })
}

// write runs fn in a transaction and retries it while that may help. A commit whose answer was lost
// may have been made: fn is then run again only if it is repeatable, that is, if a second run
// recognizes what the first one did.
func (s *Store) write(ctx context.Context, repeatable bool, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return s.retry(ctx, func(ctx context.Context) error {
		tx, err := s.pool.Begin(ctx)
		if err != nil {
			return err
		}
		if err := fn(ctx, tx); err != nil {
			// rollback has a context of its own: the transaction must end even if the time of the
			// request is over.
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
