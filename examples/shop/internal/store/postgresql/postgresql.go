// Package postgresql is the shop in PostgreSQL.
package postgresql

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// A Database is a PostgreSQL.
type Database struct {
	pool *pgxpool.Pool
}

// Open returns the database at uri, without waiting for it.
func Open(ctx context.Context, uri string) (*Database, error) {
	cfg, err := poolConfig(uri)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make the connection pool: %w", err)
	}
	return &Database{pool: pool}, nil
}

// Close waits for the connections in use and closes all.
func (d *Database) Close() { d.pool.Close() }

// undefinedTable is PostgreSQL's code for a table that does not exist.
const undefinedTable = "42P01"

// Ready returns the version of the schema, or why the database cannot serve the shop now.
func (d *Database) Ready(ctx context.Context) (int64, error) {
	var replica bool
	var version int64
	row := d.pool.QueryRow(ctx, `SELECT pg_is_in_recovery(), coalesce(max(version), 0) FROM schema_migrations`)
	err := row.Scan(&replica, &version)

	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == undefinedTable:
		return 0, engine.ErrNoSchema
	case errors.As(err, &pg):
		return 0, fmt.Errorf("the database refuses (SQLSTATE %s)", pg.Code)
	case err != nil:
		return 0, engine.ErrNoAnswer
	case replica:
		// These connections are from before a failover: new ones reach the primary.
		d.pool.Reset()
		return 0, engine.ErrReadOnly
	}
	return version, nil
}

// write runs fn in a transaction.
func (d *Database) write(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) (err error) {
	defer func() {
		if sqlState(err) == readOnly {
			// These connections are intact but lead to a former primary.
			d.pool.Reset()
		}
	}()
	tx, err := d.pool.Begin(ctx)
	if err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		rollback(ctx, tx)
		return err
	}
	err = tx.Commit(ctx)
	if err != nil && !refused(err) {
		return &engine.UnknownOutcomeError{Err: err}
	}
	return err
}

// rollback has a time of its own: the transaction must end even if that of the request is over.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.RollbackTimeout)
	defer cancel()
	// An error here means a broken connection, which the pool discards.
	_ = tx.Rollback(ctx)
}
