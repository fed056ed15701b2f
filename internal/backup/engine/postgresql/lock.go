package postgresql

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/backup/engine"
)

// A lock is a row of a table in its own schema. Every user that may connect can read it, so that
// a restore by another user is refused with the name of the lock's owner.
const (
	lockTable = engine.LockName + ".lock"

	createLock = `
CREATE SCHEMA IF NOT EXISTS ` + engine.LockName + `;
GRANT USAGE ON SCHEMA ` + engine.LockName + ` TO PUBLIC;
CREATE TABLE IF NOT EXISTS ` + lockTable + ` (id int PRIMARY KEY, record text NOT NULL);
GRANT SELECT ON ` + lockTable + ` TO PUBLIC`

	dropLock = "DROP SCHEMA " + engine.LockName + " CASCADE"

	// alone is taken by transactions that change the lock, and waiting by those that read it,
	// which wait for the former: otherwise the table could be dropped between the check that it
	// exists and the query.
	alone   = "SELECT pg_advisory_xact_lock(hashtext('" + lockTable + "'))"
	waiting = "SELECT pg_advisory_xact_lock_shared(hashtext('" + lockTable + "'))"
)

// Locked returns the lock of a database, or nil.
func (s *Server) Locked(ctx context.Context, database string) (*engine.Lock, error) {
	var record string
	err := s.with(ctx, database, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, waiting)
			if err == nil {
				record, err = readLock(ctx, tx)
			}
			return err
		})
	})
	if missing(err) {
		return nil, nil
	}
	if err != nil || record == "" {
		return nil, cannotLock(ctx, database, err)
	}
	l, err := engine.ReadLock(record)
	return l, cannotLock(ctx, database, err)
}

// Swap replaces the lock of a database if it is still from.
func (s *Server) Swap(ctx context.Context, database string, from, to *engine.Lock) (bool, error) {
	was, is, err := engine.Records(from, to)
	if err != nil {
		return false, err
	}
	if from == nil {
		if err := s.ensure(ctx, database); err != nil {
			return false, err
		}
	}
	done := false
	err = s.with(ctx, database, func(c *pgx.Conn) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var err error
			done, err = swap(ctx, tx, was, is)
			return err
		})
	})
	return done && err == nil, cannotLock(ctx, database, err)
}

func swap(ctx context.Context, tx pgx.Tx, was, is string) (bool, error) {
	if _, err := tx.Exec(ctx, alone); err != nil {
		return false, err
	}
	record, err := readLock(ctx, tx)
	if err != nil || record != was {
		return false, err
	}
	if is == "" {
		_, err := tx.Exec(ctx, dropLock)
		return true, err
	}
	if was == "" {
		if _, err := tx.Exec(ctx, createLock); err != nil {
			return false, err
		}
	}
	_, err = tx.Exec(ctx, "INSERT INTO "+lockTable+" (id, record) VALUES (1, $1) ON CONFLICT (id) DO UPDATE SET record = excluded.record", is)
	return true, err
}

// readLock returns the record of the lock, or "" if there is none.
func readLock(ctx context.Context, tx pgx.Tx) (string, error) {
	var there bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass('"+lockTable+"') IS NOT NULL").Scan(&there); err != nil || !there {
		return "", err
	}
	var record string
	err := tx.QueryRow(ctx, "SELECT record FROM "+lockTable+" WHERE id = 1").Scan(&record)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return record, err
}

func cannotLock(ctx context.Context, database string, err error) error {
	return failed(ctx, "cannot read or write the lock of restores in database "+database, err)
}
