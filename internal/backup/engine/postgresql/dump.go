package postgresql

import (
	"context"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// Version returns the version of the server.
func (s *Server) Version(ctx context.Context) (string, error) {
	var version string
	err := s.with(ctx, s.database(), func(c *pgx.Conn) error {
		return failed(ctx, "cannot ask for the version", c.QueryRow(ctx, "SHOW server_version").Scan(&version))
	})
	// Debian adds the version of its package.
	version, _, _ = strings.Cut(version, " ")
	return version, err
}

// database is the database to connect to where any will do.
func (s *Server) database() string {
	if s.conn.Database != "" {
		return s.conn.Database
	}
	return maintenance
}

// Databases returns the databases that are not the server's own. The maintenance database, to
// which clients connect by default, counts only if it is not empty.
func (s *Server) Databases(ctx context.Context) ([]string, error) {
	// A database with that limit has lost files: DROP DATABASE was interrupted.
	all, err := s.names(ctx, "SELECT datname FROM pg_database WHERE datallowconn AND datconnlimit <> -2 AND NOT datistemplate ORDER BY datname")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range all {
		if name == maintenance {
			held, err := s.Holds(ctx, name)
			if err != nil {
				return nil, err
			}
			if held == "" {
				continue
			}
		}
		out = append(out, name)
	}
	return out, nil
}

// Roles returns the roles of the server, which policies in a dump name.
func (s *Server) Roles(ctx context.Context) ([]string, error) {
	return s.names(ctx, `SELECT rolname FROM pg_roles WHERE rolname NOT LIKE 'pg\_%' ORDER BY rolname`)
}

func (s *Server) names(ctx context.Context, query string) ([]string, error) {
	var out []string
	err := s.with(ctx, s.database(), func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, query)
		if err == nil {
			out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return failed(ctx, "cannot list what the server has", err)
	})
	return out, err
}

// Dump dumps a database, and counts its rows in the same snapshot.
func (s *Server) Dump(ctx context.Context, database string, w io.Writer) (map[string]int64, error) {
	var tables map[string]int64
	err := s.with(ctx, database, func(c *pgx.Conn) error {
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return failed(ctx, "cannot begin", err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if err := unlimited(ctx, tx); err != nil {
			return err
		}
		// Rows that the user may not read are an error instead of missing in the count.
		if _, err := tx.Exec(ctx, "SET LOCAL row_security = off"); err != nil {
			return failed(ctx, "cannot set up the session", err)
		}
		var snapshot string
		if err := tx.QueryRow(ctx, "SELECT pg_export_snapshot()").Scan(&snapshot); err != nil {
			return failed(ctx, "cannot export a snapshot", err)
		}
		g, both := errgroup.WithContext(ctx)
		g.Go(func() error { return s.dump(both, database, snapshot, w) })
		g.Go(func() error {
			var err error
			tables, err = count(both, tx)
			return err
		})
		if err := g.Wait(); err != nil {
			return err
		}
		// This fails if the server that exported the snapshot is gone.
		_, err = tx.Exec(ctx, "SELECT 1")
		return failed(ctx, "cannot end the snapshot", err)
	})
	return tables, err
}

// unlimited lifts all timeouts that a server, a database or a user has from a transaction, which is
// open for as long as a dump or a count takes.
func unlimited(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT set_config(name, '0', true) FROM pg_settings
		WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`)
	return failed(ctx, "cannot set up the session", err)
}

func (s *Server) dump(ctx context.Context, database, snapshot string, w io.Writer) error {
	t, err := s.tool("pg_dump", database,
		"--format=custom", "--compress=0", "--snapshot="+snapshot, "--lock-wait-timeout=300000", "--exclude-schema="+engine.LockName,
		// A restored subscription would compete with the original one.
		"--no-subscriptions")
	if err != nil {
		return err
	}
	t.Stdout = w
	return t.Run(ctx)
}

// tablesQuery lists the tables whose rows a dump contains. Tables of extensions are not among
// them, nor are, on a standby, unlogged tables, which have no rows there.
const tablesQuery = `
SELECT n.nspname, c.relname
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r'
  AND (c.relpersistence = 'p' OR c.relpersistence = 'u' AND NOT pg_catalog.pg_is_in_recovery())
  AND` + ofUsers + `
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1, 2`

// largeObjects is the name under which large objects are counted.
const largeObjects = "pg_catalog.pg_largeobject_metadata"

// count counts the rows of all tables.
func count(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	rows, err := tx.Query(ctx, tablesQuery)
	if err != nil {
		return nil, failed(ctx, "cannot list the tables", err)
	}
	names, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (pgx.Identifier, error) {
		name := make(pgx.Identifier, 2)
		return name, row.Scan(&name[0], &name[1])
	})
	if err != nil {
		return nil, failed(ctx, "cannot list the tables", err)
	}
	out := make(map[string]int64, len(names))
	for _, name := range names {
		var n int64
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM ONLY "+name.Sanitize()).Scan(&n); err != nil {
			return nil, failed(ctx, "cannot count the rows of "+tableName(name), err)
		}
		out[tableName(name)] = n
	}
	var n int64
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+largeObjects).Scan(&n); err != nil {
		return nil, failed(ctx, "cannot count the large objects", err)
	}
	if n > 0 {
		out[largeObjects] = n
	}
	return out, nil
}

// tableName returns the name as users write it, quoted only if it would be ambiguous.
func tableName(name pgx.Identifier) string {
	if strings.ContainsAny(name[0]+name[1], `."`) {
		return name.Sanitize()
	}
	return name[0] + "." + name[1]
}

// Count counts the rows of all tables.
func (s *Server) Count(ctx context.Context, database string) (map[string]int64, error) {
	var out map[string]int64
	err := s.with(ctx, database, func(c *pgx.Conn) error {
		tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return failed(ctx, "cannot begin", err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if err := unlimited(ctx, tx); err != nil {
			return err
		}
		out, err = count(ctx, tx)
		return err
	})
	return out, err
}

// Query fails unless the query returns a row, and none whose first column is false, 0 or null.
func (s *Server) Query(ctx context.Context, database, query string) error {
	return s.with(ctx, database, func(c *pgx.Conn) error {
		// Values are returned as text, whatever the type of the column.
		rows := c.PgConn().ExecParams(ctx, query, nil, nil, nil, nil)
		n := 0
		for rows.NextRow() {
			n++
			if v := rows.Values(); len(v) == 0 || !engine.Truthy(v[0]) {
				_, _ = rows.Close()
				return backup.Errorf(backup.ContentDiffers, "the verification query returned false in row %d", n)
			}
		}
		if _, err := rows.Close(); err != nil {
			return backup.Errorf(backup.ContentDiffers, "the query failed: %w", inWords(err))
		}
		if n == 0 {
			return backup.Errorf(backup.ContentDiffers, "the query returned no row")
		}
		return nil
	})
}
