package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/jackc/pgx/v5"
)

// postgreSQL is a connection to one database of a server.
type postgreSQL struct{ conn *pgx.Conn }

func connectPostgreSQL(ctx context.Context, uri string) (server, error) {
	conn, err := pgx.Connect(ctx, uri)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to PostgreSQL: %w", err)
	}
	return &postgreSQL{conn}, nil
}

func (p *postgreSQL) close(ctx context.Context) { _ = p.conn.Close(ctx) }

// postgreSQLTables contain what dumps may get wrong: unusual names, values that look like others,
// empty values and NULL, and objects other than tables.
const postgreSQLTables = `
CREATE TYPE mood AS ENUM ('fine', 'so so', '悪い');
CREATE TABLE orders (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  customer text NOT NULL,
  total numeric(12,2) NOT NULL,
  placed timestamptz NOT NULL,
  note text,
  feels mood
);
CREATE INDEX orders_by_customer ON orders (customer, placed DESC) WHERE note IS NOT NULL;
CREATE TABLE empty (id uuid PRIMARY KEY, says text DEFAULT 'nothing');
CREATE TABLE "Odd ""Näme""; 表 $$ \ '" (
  "select" int, "a""b" text, "ü" bytea, "tags" text[], "doc" jsonb, "span" tstzrange, "addr" inet
);
INSERT INTO "Odd ""Näme""; 表 $$ \ '" VALUES
  (1, '', '', '{}', '{}', 'empty', '::1'),
  (2, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, E'\\N', '\x005c0a00ff', '{NULL,"NULL",""}', '{"ä": [1.10, null, "😀"]}', '[2026-01-01,)', '10.0.0.0/8'),
  (4, E'tab\ttwo\nlines\r\n''quoted'' "too" \\ 😀 e\u0301', decode(repeat('00ff', 500000), 'hex'), ARRAY['a,b','{c}'], 'null', '(,)', NULL);
CREATE SCHEMA "Other Schema";
CREATE TABLE "Other Schema".lines (
  "order" bigint NOT NULL REFERENCES orders ON DELETE CASCADE, n int CHECK (n > 0), price double precision,
  total double precision GENERATED ALWAYS AS (n * price) STORED
);
CREATE TABLE events (at date NOT NULL, what text) PARTITION BY RANGE (at);
CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
INSERT INTO events SELECT date '2025-01-01' + n, 'event ' || n FROM generate_series(0, 700) n;
CREATE TABLE attachments (id int PRIMARY KEY, content oid);
CREATE SEQUENCE invoice START 1000 INCREMENT 7;
SELECT nextval('invoice'), nextval('invoice');
CREATE VIEW large AS SELECT id, total FROM orders WHERE total > 900;
CREATE MATERIALIZED VIEW by_mood AS SELECT feels, count(*) FROM orders GROUP BY feels WITH NO DATA;
CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
CREATE TABLE changes (at timestamptz DEFAULT '2026-01-01', what text);
CREATE FUNCTION changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO changes (what) VALUES (TG_OP); RETURN NULL; END $$;
CREATE TRIGGER changed AFTER INSERT OR UPDATE ON attachments FOR EACH ROW EXECUTE FUNCTION changed();
COMMENT ON TABLE orders IS 'what people bought: ü "quoted"';
`

func (p *postgreSQL) load(ctx context.Context, rows, bulk int) error {
	// Notes contain digests, so that a dump of them does not compress to almost nothing.
	fill := fmt.Sprintf(`
INSERT INTO orders (customer, total, placed, note, feels)
  SELECT 'customer ' || n %% 977, (n * 7919 %% 100000) / 100.0, timestamptz '2026-01-01' + n * interval '1 minute',
    CASE n %% 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'n° ' || n || ' ' || md5(n::text) END, (enum_range(NULL::mood))[(1 + n %% 3)::int]
  FROM generate_series(1::bigint, %d) n;
INSERT INTO "Other Schema".lines SELECT id, 1 + id %% 5, id / 3.0 FROM orders WHERE id %% 2 = 0;
INSERT INTO attachments SELECT n, lo_from_bytea(0, decode(repeat(md5(n::text), n * 1000), 'hex')) FROM generate_series(1, 5) n;
INSERT INTO attachments VALUES (6, lo_from_bytea(0, '')), (7, NULL);
REFRESH MATERIALIZED VIEW by_mood;`, rows)
	for _, s := range []string{postgreSQLTables, fill} {
		if _, err := p.conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("cannot fill the database: %w", err)
		}
	}
	if bulk == 0 {
		return nil
	}
	if _, err := p.conn.Exec(ctx, "CREATE TABLE bulk (id int PRIMARY KEY, content bytea); ALTER TABLE bulk ALTER content SET STORAGE EXTERNAL"); err != nil {
		return fmt.Errorf("cannot make a table: %w", err)
	}
	// Rows are small, because a server keeps a thousand rows of a binary COPY in memory.
	const size = 64 << 10
	random := rand.NewChaCha8([32]byte{1})
	_, err := p.conn.CopyFrom(ctx, pgx.Identifier{"bulk"}, []string{"id", "content"}, pgx.CopyFromSlice(bulk<<20/size, func(i int) ([]any, error) {
		b := make([]byte, size)
		_, _ = random.Read(b)
		return []any{i, b}, nil
	}))
	if err != nil {
		return fmt.Errorf("cannot fill a table: %w", err)
	}
	return nil
}

// postgreSQLCatalog are the queries for everything else that is compared, with one row for each
// object.
var postgreSQLCatalog = map[string]string{
	"(large objects)": "SELECT encode(lo_get(content), 'hex') FROM public.attachments WHERE content IS NOT NULL",
	"(sequences)":     "SELECT schemaname || '.' || sequencename || ' ' || coalesce(last_value::text, '') FROM pg_sequences",
	"(constraints)":   "SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace::regnamespace::text !~ '^(pg_|information_schema)'",
	"(indexes)":       "SELECT indexdef FROM pg_indexes WHERE schemaname !~ '^(pg_|information_schema)'",
	"(columns)":       "SELECT table_schema || '.' || table_name || '.' || column_name || ' ' || data_type || ' ' || coalesce(column_default, '') || ' ' || is_nullable FROM information_schema.columns WHERE table_schema !~ '^(pg_|information_schema)'",
	"(functions)":     "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace::regnamespace::text !~ '^(pg_|information_schema)' AND prokind = 'f' AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')",
	"(triggers)":      "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
	"(views)":         "SELECT viewname || definition FROM pg_views WHERE schemaname !~ '^(pg_|information_schema)'",
	"(comments)":      "SELECT obj_description(oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND obj_description(oid) IS NOT NULL",
}

func (p *postgreSQL) sums(ctx context.Context) (map[string]*sum, error) {
	tables, err := p.exec(ctx, `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^(pg_|information_schema)' AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e')`)
	if err != nil {
		return nil, err
	}
	out := map[string]*sum{}
	for _, t := range tables {
		// A large object may have another OID after a restore, so its OID is not compared.
		row := "t.*::text"
		if strings.HasSuffix(t, ".attachments") {
			row = "t.id || ' ' || (t.content IS NULL)"
		}
		if out[t], err = p.sum(ctx, "SELECT "+row+" FROM "+t+" t"); err != nil {
			return nil, err
		}
	}
	for name, query := range postgreSQLCatalog {
		if name == "(large objects)" && out["public.attachments"] == nil {
			continue
		}
		if out[name], err = p.sum(ctx, query); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sum returns the sum of a query's rows, which are read one at a time.
func (p *postgreSQL) sum(ctx context.Context, query string) (*sum, error) {
	// The simple protocol returns all values as text and prepares no statement.
	rows, err := p.conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, fmt.Errorf("cannot read (%s): %w", query, err)
	}
	defer rows.Close()
	s := &sum{}
	for rows.Next() {
		s.add(rows.RawValues()...)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cannot read (%s): %w", query, err)
	}
	return s, nil
}

func (p *postgreSQL) exec(ctx context.Context, statement string) ([]string, error) {
	results, err := p.conn.PgConn().Exec(ctx, statement).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot run %q: %w", statement, err)
	}
	var out []string
	for _, r := range results {
		for _, row := range r.Rows {
			if len(row) > 0 {
				out = append(out, string(row[0]))
			}
		}
	}
	return out, nil
}

// drop drops another database than that of this connection, and creates it again.
func (p *postgreSQL) drop(ctx context.Context, database string) error {
	name := pgx.Identifier{database}.Sanitize()
	for _, s := range []string{"DROP DATABASE IF EXISTS " + name + " WITH (FORCE)", "CREATE DATABASE " + name} {
		if _, err := p.conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("cannot make database %s anew: %w", database, err)
		}
	}
	return nil
}
