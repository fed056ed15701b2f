// Package mysql is the shop in MySQL.
package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// A Database is a MySQL.
type Database struct {
	pool *sql.DB
}

// Open returns the database at uri, without waiting for it.
func Open(uri string) (*Database, error) {
	cfg, err := config(uri)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		// The driver's error may quote a setting.
		return nil, errors.New("it cannot be used")
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(engine.MaxConns)
	pool.SetMaxIdleConns(engine.MaxConns)
	pool.SetConnMaxIdleTime(engine.MaxConnIdleTime)
	pool.SetConnMaxLifetime(engine.MaxConnLifetime)
	return &Database{pool: pool}, nil
}

// Close waits for the connections in use and closes all.
func (d *Database) Close() { _ = d.pool.Close() }

// Ready returns the version of the schema, or why the database cannot serve the shop now.
func (d *Database) Ready(ctx context.Context) (int64, error) {
	var version int64
	err := d.use(ctx, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM schema_migrations`).Scan(&version)
	})
	switch number := number(err); {
	case number == noSuchTable:
		return 0, engine.ErrNoSchema
	case number != 0:
		return 0, fmt.Errorf("the database refuses (error %d)", number)
	case errors.Is(err, engine.ErrReadOnly):
		return 0, engine.ErrReadOnly
	case err != nil:
		return 0, engine.ErrNoAnswer
	}
	return version, nil
}

// use runs fn with a connection to a server that takes changes: what a former primary shows is old.
func (d *Database) use(ctx context.Context, fn func(conn *sql.Conn) error) error {
	conn, err := d.pool.Conn(ctx)
	if err != nil {
		return &connectError{err}
	}
	defer func() { _ = conn.Close() }()
	if err = primary(ctx, conn); err == nil {
		err = fn(conn)
	}
	if readOnly(err) || broken(err) {
		discard(conn)
		d.reset()
	}
	return err
}

// primary returns an error unless the connection leads to a server that takes changes.
func primary(ctx context.Context, conn *sql.Conn) error {
	var replica bool
	err := conn.QueryRowContext(ctx, `SELECT @@global.read_only OR @@global.super_read_only`).Scan(&replica)
	if err == nil && replica {
		return engine.ErrReadOnly
	}
	return err
}

// write runs fn in a transaction. Its statements are sent as such, since Commit of package sql has no
// time limit: it would wait for a host that is gone.
func (d *Database) write(ctx context.Context, fn func(conn *sql.Conn) error) error {
	return d.use(ctx, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, `START TRANSACTION`); err != nil {
			return err
		}
		if err := fn(conn); err != nil {
			rollback(ctx, conn)
			return err
		}
		_, err := conn.ExecContext(ctx, `COMMIT`)
		switch {
		case err != nil && !refused(err):
			discard(conn)
			return &engine.UnknownOutcomeError{Err: err}
		case err != nil:
			rollback(ctx, conn)
			return err
		}
		return nil
	})
}

// rollback has a time of its own: the transaction must end even if that of the request is over.
func rollback(ctx context.Context, conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), engine.RollbackTimeout)
	defer cancel()
	if _, err := conn.ExecContext(ctx, `ROLLBACK`); err != nil {
		discard(conn)
	}
}

// reset closes the idle connections. They may lead to a former primary, or to a host that is gone: new
// ones reach the primary.
func (d *Database) reset() {
	d.pool.SetMaxIdleConns(0)
	d.pool.SetMaxIdleConns(engine.MaxConns)
}

// discard closes a connection instead of giving it back, which ends what the server holds for it.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
