package mysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/backup/engine"
)

// Error numbers of the server.
const (
	errNoDatabase   = 1049
	errNoTable      = 1146
	errUnknownTable = 1109
	errDuplicate    = 1062

	errTableDenied     = 1142
	errUnknownVariable = 1193
)

// number returns the number of a server's error, or 0.
func number(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

func lockTable(database string) string { return quote(database) + "." + quote(engine.LockName) }

// Locked returns the lock of a database, which is a row of a table in it, or nil.
func (s *Server) Locked(ctx context.Context, database string) (*engine.Lock, error) {
	var record string
	err := s.db.QueryRowContext(ctx, "SELECT record FROM "+lockTable(database)+" WHERE id = 1").Scan(&record)
	// A user who may read only some tables gets this error for a table that does not exist.
	if n := number(err); n == errNoDatabase || n == errNoTable || n == errTableDenied || errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, cannotLock(ctx, database, err)
	}
	l, err := engine.ReadLock(record)
	return l, cannotLock(ctx, database, err)
}

// Swap replaces the lock of a database if it is still from. Each way is decided by one statement,
// since creating and dropping a table ends a transaction.
func (s *Server) Swap(ctx context.Context, database string, from, to *engine.Lock) (bool, error) {
	was, is, err := engine.Records(from, to)
	if err != nil {
		return false, err
	}
	table := lockTable(database)
	switch {
	case was == "":
		return s.insertLock(ctx, database, is)
	case is == "":
		// No other restore can take the lock meanwhile: it would have to find the lock unchanged
		// for longer than this takes.
		have, err := s.Locked(ctx, database)
		if err != nil || have == nil || *have != *from {
			return false, err
		}
		_, err = s.db.ExecContext(ctx, "DROP TABLE "+table)
		return err == nil, cannotLock(ctx, database, err)
	}
	result, err := s.db.ExecContext(ctx, "UPDATE "+table+" SET record = ? WHERE id = 1 AND record = ?", is, was) //nolint:gosec // a quoted name
	if number(err) == errNoTable {
		return false, nil
	}
	if err != nil {
		return false, cannotLock(ctx, database, err)
	}
	n, err := result.RowsAffected()
	return n == 1, cannotLock(ctx, database, err)
}

// insertLock creates the lock unless there is one.
func (s *Server) insertLock(ctx context.Context, database, record string) (bool, error) {
	table := lockTable(database)
	if err := s.ensure(ctx, database); err != nil {
		return false, err
	}
	_, err := s.db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+" (id TINYINT PRIMARY KEY, record VARBINARY(2048) NOT NULL) ENGINE=InnoDB")
	if err == nil {
		_, err = s.db.ExecContext(ctx, "INSERT INTO "+table+" (id, record) VALUES (1, ?)", record) //nolint:gosec // a quoted name
	}
	if n := number(err); n == errDuplicate || n == errNoTable {
		return false, nil
	}
	return err == nil, cannotLock(ctx, database, err)
}

func cannotLock(ctx context.Context, database string, err error) error {
	return failed(ctx, "cannot read or write the lock of restores in database "+database, err)
}
