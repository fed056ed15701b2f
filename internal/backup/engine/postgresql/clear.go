package postgresql

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// notOfExtension is the condition that an object does not belong to an extension.
const notOfExtension = ` AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e WHERE e.classid = o.tableoid AND e.objid = o.oid AND e.deptype = 'e')`

// ofUsers is the condition that a schema is neither the server's own nor that of the lock.
const ofUsers = ` n.nspname NOT IN ('information_schema', '` + engine.LockName + `') AND n.nspname !~ '^pg_'`

// holdsQuery finds one object that a user created in the database. Schemas in which an extension
// is installed, the extension's objects and the schema public do not count.
const holdsQuery = `
SELECT what FROM (
  (SELECT 'table or view ' || n.nspname || '.' || o.relname AS what
   FROM pg_catalog.pg_class o JOIN pg_catalog.pg_namespace n ON n.oid = o.relnamespace
   WHERE o.relkind IN ('r', 'p', 'v', 'm', 'S', 'f') AND` + ofUsers + notOfExtension + ` ORDER BY o.relkind = 'S', 1 LIMIT 1)
  UNION ALL
  (SELECT 'function ' || n.nspname || '.' || o.proname
   FROM pg_catalog.pg_proc o JOIN pg_catalog.pg_namespace n ON n.oid = o.pronamespace
   WHERE` + ofUsers + notOfExtension + ` LIMIT 1)
  UNION ALL
  (SELECT 'type ' || n.nspname || '.' || o.typname
   FROM pg_catalog.pg_type o JOIN pg_catalog.pg_namespace n ON n.oid = o.typnamespace
   WHERE o.typtype IN ('d', 'e', 'r') AND` + ofUsers + notOfExtension + ` LIMIT 1)
  UNION ALL
  (SELECT 'schema ' || o.nspname
   FROM pg_catalog.pg_namespace o JOIN pg_catalog.pg_namespace n ON n.oid = o.oid
   WHERE o.nspname <> 'public' AND` + ofUsers + notOfExtension + `
     AND NOT EXISTS (SELECT FROM pg_catalog.pg_extension x WHERE x.extnamespace = o.oid) LIMIT 1)
  UNION ALL
  (SELECT 'large object ' || o.oid FROM pg_catalog.pg_largeobject_metadata o LIMIT 1)
) things LIMIT 1`

// Holds returns one thing that a database holds, or "".
func (s *Server) Holds(ctx context.Context, database string) (string, error) {
	var what string
	err := s.with(ctx, database, func(c *pgx.Conn) error {
		err := c.QueryRow(ctx, holdsQuery).Scan(&what)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return failed(ctx, "cannot read database "+database, err)
	})
	if missing(err) {
		return "", backup.Errorf(backup.SourceUnreachable, "cannot connect to database %s: %w", database, engine.ErrNoDatabase)
	}
	return what, err
}

// clearing drops what users created, but large objects, in one transaction: if one object cannot
// be dropped, none is. Extensions stay, with their schemas, since an administrator created them.
const clearing = `
SET LOCAL lock_timeout = '60s';
SET LOCAL client_min_messages = 'error';
DO $storeplane$
DECLARE
  stmt text;
BEGIN
  FOR stmt IN SELECT format('DROP PUBLICATION %I', o.pubname) FROM pg_catalog.pg_publication o LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN SELECT format('DROP EVENT TRIGGER %I', o.evtname) FROM pg_catalog.pg_event_trigger o WHERE true` + notOfExtension + ` LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN SELECT format('DROP SERVER %I CASCADE', o.srvname) FROM pg_catalog.pg_foreign_server o WHERE true` + notOfExtension + ` LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP SCHEMA %I CASCADE', o.nspname)
    FROM pg_catalog.pg_namespace o JOIN pg_catalog.pg_namespace n ON n.oid = o.oid
    WHERE o.nspname <> 'public' AND` + ofUsers + notOfExtension + `
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_extension x WHERE x.extnamespace = o.oid)
  LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP %s IF EXISTS %I.%I CASCADE',
      CASE o.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END,
      n.nspname, o.relname)
    FROM pg_catalog.pg_class o JOIN pg_catalog.pg_namespace n ON n.oid = o.relnamespace
    WHERE o.relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c') AND` + ofUsers + notOfExtension + `
    ORDER BY o.relkind = 'S'
  LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP ROUTINE IF EXISTS %s CASCADE', o.oid::pg_catalog.regprocedure)
    FROM pg_catalog.pg_proc o JOIN pg_catalog.pg_namespace n ON n.oid = o.pronamespace
    WHERE` + ofUsers + notOfExtension + `
  LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP TYPE IF EXISTS %I.%I CASCADE', n.nspname, o.typname)
    FROM pg_catalog.pg_type o JOIN pg_catalog.pg_namespace n ON n.oid = o.typnamespace
    WHERE o.typtype IN ('d', 'e', 'r', 'b') AND o.typelem = 0 AND` + ofUsers + notOfExtension + `
  LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP COLLATION IF EXISTS %I.%I CASCADE', n.nspname, o.collname)
    FROM pg_catalog.pg_collation o JOIN pg_catalog.pg_namespace n ON n.oid = o.collnamespace
    WHERE` + ofUsers + notOfExtension + `
  LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP TEXT SEARCH CONFIGURATION IF EXISTS %I.%I CASCADE', n.nspname, o.cfgname)
    FROM pg_catalog.pg_ts_config o JOIN pg_catalog.pg_namespace n ON n.oid = o.cfgnamespace
    WHERE` + ofUsers + notOfExtension + `
  LOOP EXECUTE stmt; END LOOP;
  FOR stmt IN
    SELECT format('DROP TEXT SEARCH DICTIONARY IF EXISTS %I.%I CASCADE', n.nspname, o.dictname)
    FROM pg_catalog.pg_ts_dict o JOIN pg_catalog.pg_namespace n ON n.oid = o.dictnamespace
    WHERE` + ofUsers + notOfExtension + `
  LOOP EXECUTE stmt; END LOOP;
END
$storeplane$;
`

// unlinking removes a thousand large objects at a time, since each takes a lock.
const unlinking = `SELECT count(pg_catalog.lo_unlink(o.oid)) FROM (SELECT oid FROM pg_catalog.pg_largeobject_metadata LIMIT 1000) o`

// Clear drops all that a database holds but its lock, and creates it if it does not exist.
func (s *Server) Clear(ctx context.Context, database string) error {
	err := s.with(ctx, database, func(c *pgx.Conn) error {
		// All statements are one transaction.
		if _, err := c.PgConn().Exec(ctx, "BEGIN;"+clearing+"COMMIT").ReadAll(); err != nil {
			cannot := cannotClear(ctx, database, err)
			// An error that the server has sent ends the transaction.
			if _, ok := errors.AsType[*pgconn.PgError](err); ok {
				return engine.Unchanged(cannot)
			}
			return cannot
		}
		for {
			var n int64
			if err := c.QueryRow(ctx, unlinking).Scan(&n); err != nil {
				return cannotClear(ctx, database, err)
			}
			if n == 0 {
				return nil
			}
		}
	})
	if missing(err) {
		return s.create(ctx, database)
	}
	return err
}

func cannotClear(ctx context.Context, database string, err error) error {
	return failed(ctx, "cannot drop what database "+database+" holds", err)
}

// ensure creates a database unless it exists.
func (s *Server) ensure(ctx context.Context, database string) error {
	err := s.with(ctx, database, func(*pgx.Conn) error { return nil })
	if missing(err) {
		return s.create(ctx, database)
	}
	return err
}

// duplicateDatabase are the error codes for a database that exists, and for one that is being
// created at the same time.
var duplicateDatabase = []string{"42P04", "23505"}

// create creates a database, connected to one that every server has.
func (s *Server) create(ctx context.Context, database string) error {
	return s.with(ctx, maintenance, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{database}.Sanitize())
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && slices.Contains(duplicateDatabase, e.Code) {
			return nil // another client created it first
		}
		return failed(ctx, "cannot create database "+database, err)
	})
}
