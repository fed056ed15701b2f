package mysql

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/backup/engine"
)

// thingsQuery lists all that a database holds but its lock: the kind, as in the statement that
// drops it, and the name. Views come first. Triggers are dropped with their tables.
const thingsQuery = `
	SELECT CASE table_type WHEN 'VIEW' THEN 'VIEW' WHEN 'SEQUENCE' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, table_name AS name
	FROM information_schema.tables WHERE table_schema = ? AND table_name <> '` + engine.LockName + `'
	UNION ALL
	SELECT routine_type, routine_name FROM information_schema.routines WHERE routine_schema = ? AND routine_type <> 'PACKAGE BODY'
	UNION ALL
	SELECT 'EVENT', event_name FROM information_schema.events WHERE event_schema = ?
	ORDER BY kind = 'VIEW' DESC, kind, name`

// Clear drops all that a database holds but its lock, and creates it if it does not exist. The
// database itself is not dropped, because the lock would be lost. Privileges on it stay, as they
// are bound to its name.
func (s *Server) Clear(ctx context.Context, database string) error {
	if err := s.ensure(ctx, database); err != nil {
		return err
	}
	return failed(ctx, "cannot clear database "+database, s.clear(ctx, database))
}

func (s *Server) clear(ctx context.Context, database string) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	drops, err := dropping(ctx, conn, database)
	if err != nil || len(drops) == 0 {
		return err
	}
	// Tables may refer to each other, so the checks are off for this session, until the connection
	// returns to the pool.
	if _, err := conn.ExecContext(ctx, "SET SESSION foreign_key_checks = 0"); err != nil {
		return err
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SET SESSION foreign_key_checks = DEFAULT")
	}()
	for i, drop := range drops {
		if _, err := conn.ExecContext(ctx, drop); err != nil {
			// A statement that the server refuses drops nothing.
			if _, ok := errors.AsType[*mysql.MySQLError](err); ok && i == 0 {
				return engine.Unchanged(err)
			}
			return err
		}
	}
	return nil
}

// dropping returns the statements that drop all that a database holds.
func dropping(ctx context.Context, conn *sql.Conn, database string) ([]string, error) {
	rows, err := conn.QueryContext(ctx, thingsQuery, database, database, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var out []string
	for rows.Next() {
		var kind, name string
		if err := rows.Scan(&kind, &name); err != nil {
			return nil, err
		}
		out = append(out, "DROP "+strings.ToUpper(kind)+" IF EXISTS "+quote(database)+"."+quote(name))
	}
	return out, rows.Err()
}
