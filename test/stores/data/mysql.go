package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mySQL is a connection to MariaDB or MySQL.
type mySQL struct{ db *sql.DB }

// connectMySQL connects to the server at a URI, whose ssl-mode is that of MySQL's own clients. Below the URI may
// be the certificate of an authority, which VERIFY_CA and VERIFY_IDENTITY require: what a client has in the file ssl-ca.
func connectMySQL(ctx context.Context, settings string) (server, error) {
	uri, authority, _ := strings.Cut(settings, "\n")
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("cannot read a connection to MariaDB: %w", err)
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	cfg.Passwd, _ = u.User.Password()
	cfg.MultiStatements = true
	if err := secure(cfg, u.Query().Get("ssl-mode"), authority, u.Hostname()); err != nil {
		return nil, err
	}
	cfg.Params = map[string]string{"time_zone": "'+00:00'"}
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, fmt.Errorf("cannot set up a connection to MariaDB: %w", err)
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to MariaDB: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1) // settings of a session apply to one connection
	if err := db.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("cannot connect to MariaDB: %w", err)
	}
	return &mySQL{db}, nil
}

// secure sets how the connection is encrypted and whom it trusts.
func secure(cfg *mysql.Config, mode, authority, host string) error {
	switch mode {
	case "", "PREFERRED":
		cfg.TLSConfig = "preferred"
		return nil
	case "DISABLED":
		cfg.TLSConfig = "false"
		return nil
	case "REQUIRED":
		cfg.TLSConfig = "skip-verify"
		return nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return errors.New("cannot verify a server of MySQL: there is no certificate of an authority below the connection")
	}
	switch mode {
	case "VERIFY_CA":
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // the mode verifies no name
		cfg.TLS.VerifyConnection = func(state tls.ConnectionState) error {
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err
		}
	case "VERIFY_IDENTITY":
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host}
	default:
		return fmt.Errorf("cannot connect to MySQL with ssl-mode %s: MySQL's clients have no such mode", mode)
	}
	return nil
}

func (m *mySQL) close(context.Context) { _ = m.db.Close() }

const commonTables = `
CREATE TABLE orders (
  id bigint AUTO_INCREMENT PRIMARY KEY, customer varchar(100) NOT NULL, total decimal(12,2) NOT NULL,
  placed datetime(6) NOT NULL, note text, feels enum('fine', 'so so', '悪い'), KEY by_customer (customer, placed)
) DEFAULT CHARSET utf8mb4 COMMENT 'what people bought: ü "quoted"';
` + "CREATE TABLE `empty` (id int PRIMARY KEY, says text); CREATE TABLE `Odd \"Näme\"; 表 $$ '` (`select` int PRIMARY KEY, `a``b` text, `ü` longblob, doc json, tiny bit(9), at timestamp NULL, p point)" + ` DEFAULT CHARSET utf8mb4;
` + "INSERT INTO `Odd \"Näme\"; 表 $$ '` VALUES" + `
  (1, '', '', '{}', b'0', '2026-01-01 00:00:00', POINT(1, 2)),
  (2, NULL, NULL, NULL, NULL, NULL, NULL),
  (3, '\\N', 0x005c0a00ff270d1a22, '{"ä": [1.10, null, "😀"]}', b'101010101', '2026-03-29 01:30:00', NULL),
  (4, 'tab\ttwo\nlines\r\n\'quoted\' "too" \\ 😀 é', REPEAT(0x00ff, 500000), 'null', b'1', NULL, NULL);
CREATE TABLE lines_of (
  ` + "`order`" + ` bigint NOT NULL, n int, price double, total double AS (n * price) STORED,
  CONSTRAINT of_order FOREIGN KEY (` + "`order`" + `) REFERENCES orders (id) ON DELETE CASCADE
);
CREATE TABLE changes (what text);
CREATE TABLE shy (id int PRIMARY KEY, hidden int INVISIBLE DEFAULT 7);
INSERT INTO shy (id, hidden) VALUES (1, 2), (2, NULL), (3, DEFAULT);
CREATE EVENT sweep ON SCHEDULE EVERY 1 YEAR DISABLE DO DELETE FROM changes;
CREATE VIEW large AS SELECT id, total FROM orders WHERE total > 900;
CREATE FUNCTION twice(n int) RETURNS int DETERMINISTIC RETURN n * 2;
CREATE PROCEDURE note(t text) INSERT INTO changes VALUES (t);
CREATE TRIGGER changed AFTER UPDATE ON orders FOR EACH ROW INSERT INTO changes VALUES (CONCAT('changed ', NEW.id));
`

// What only one of the two has.
const (
	mariaDBTables = `
CREATE SEQUENCE invoice START WITH 1000 INCREMENT BY 7 NOCACHE;
SELECT NEXT VALUE FOR invoice;
`
	mySQLTables = `
CREATE TABLE prices (
  sku varchar(40) COLLATE utf8mb4_0900_ai_ci NOT NULL PRIMARY KEY, doc json DEFAULT (JSON_OBJECT('n', 1)), net decimal(10,2) CHECK (net >= 0),
  hidden int INVISIBLE DEFAULT 7, added datetime DEFAULT (now()), at point NOT NULL SRID 4326, meaning vector(3),
  UNIQUE KEY lower_sku ((lower(sku))), KEY by_n ((CAST(doc->>'$.n' AS UNSIGNED))), SPATIAL KEY (at)
) COLLATE utf8mb4_0900_as_cs;
INSERT INTO prices (sku, doc, net, hidden, added, at, meaning) VALUES
  ('a-1', '{"n": 3, "ä": "😀"}', 1.10, 1, '2026-01-01 00:00:00', ST_SRID(POINT(48.2, 16.4), 4326), STRING_TO_VECTOR('[1,2.5,-3]')),
  ('b-2', NULL, NULL, NULL, '2026-01-02 00:00:00', ST_SRID(POINT(0, 0), 4326), NULL);
CREATE TABLE days (day date NOT NULL PRIMARY KEY, n int) PARTITION BY RANGE COLUMNS (day) (
  PARTITION past VALUES LESS THAN ('2026-01-01'), PARTITION rest VALUES LESS THAN (MAXVALUE));
INSERT INTO days VALUES ('2025-12-31', 1), ('2026-01-01', 2);
CREATE VIEW latest AS WITH ranked AS (SELECT customer, total, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY placed DESC) AS n FROM orders) SELECT customer, total FROM ranked WHERE n = 1;
`
)

func (m *mySQL) load(ctx context.Context, rows, bulk int) error {
	version, err := m.exec(ctx, "SELECT version()")
	if err != nil {
		return err
	}
	more, numbers := mariaDBTables, fmt.Sprintf("seq_1_to_%d", rows) // a virtual table
	if !strings.Contains(strings.Join(version, ""), "MariaDB") {
		more = mySQLTables + fmt.Sprintf("SET SESSION cte_max_recursion_depth = %d;", rows+1)
		numbers = fmt.Sprintf("(WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < %d) SELECT seq FROM n) AS numbers", rows)
	}
	fill := fmt.Sprintf(`
INSERT INTO orders (customer, total, placed, note, feels)
  SELECT CONCAT('customer ', seq %% 977), (seq * 7919 %% 100000) / 100.0, '2026-01-01' + INTERVAL seq MINUTE,
    CASE seq %% 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE CONCAT('n° ', seq, ' ', SHA2(seq, 256)) END, 1 + seq %% 3
  FROM %s;
INSERT INTO lines_of (`+"`order`"+`, n, price) SELECT id, 1 + id %% 5, id / 3.0 FROM orders WHERE id %% 2 = 0;
UPDATE orders SET note = 'changed' WHERE id IN (1, 2);`, numbers)
	for _, s := range []string{commonTables, more, fill} {
		if _, err := m.db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("cannot fill the database: %w", err)
		}
	}
	if bulk == 0 {
		return nil
	}
	if _, err := m.db.ExecContext(ctx, "CREATE TABLE bulk (id int PRIMARY KEY, content longblob)"); err != nil {
		return fmt.Errorf("cannot make a table: %w", err)
	}
	random := rand.NewChaCha8([32]byte{1})
	b := make([]byte, 1<<20)
	for i := range bulk {
		_, _ = random.Read(b)
		if _, err := m.db.ExecContext(ctx, "INSERT INTO bulk VALUES (?, ?)", i, b); err != nil {
			return fmt.Errorf("cannot fill a table: %w", err)
		}
	}
	return nil
}

// generatedKey is the primary key that MySQL gives a table without one. Its values are new in a copy.
const generatedKey = "my_row_id"

// mySQLCatalog are the queries for everything else that is compared, with one row for each
// object.
var mySQLCatalog = map[string]string{
	"(columns)":     "SELECT table_name, column_name, column_type, is_nullable, column_default, generation_expression FROM information_schema.columns WHERE table_schema = DATABASE()",
	"(indexes)":     "SELECT table_name, index_name, column_name, seq_in_index, non_unique FROM information_schema.statistics WHERE table_schema = DATABASE()",
	"(constraints)": "SELECT table_name, constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_schema = DATABASE()",
	// The semicolon behind a statement among others is kept by MySQL, and not in a copy.
	"(routines)": "SELECT routine_name, routine_type, TRIM(TRAILING ';' FROM routine_definition) FROM information_schema.routines WHERE routine_schema = DATABASE()",
	"(triggers)": "SELECT trigger_name, event_manipulation, action_timing, TRIM(TRAILING ';' FROM action_statement) FROM information_schema.triggers WHERE trigger_schema = DATABASE()",
	"(events)":   "SELECT event_name, interval_value, interval_field, status, TRIM(TRAILING ';' FROM event_definition) FROM information_schema.events WHERE event_schema = DATABASE()",
	"(views)":    "SELECT table_name, REPLACE(view_definition, CONCAT('`', DATABASE(), '`.'), '') FROM information_schema.views WHERE table_schema = DATABASE()",
	"(comments)": "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'",
}

func (m *mySQL) sums(ctx context.Context) (map[string]*sum, error) {
	tables, err := m.exec(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type IN ('BASE TABLE', 'SEQUENCE')")
	if err != nil {
		return nil, err
	}
	out := map[string]*sum{}
	for _, t := range tables {
		columns, err := m.exec(ctx, "SELECT CONCAT('`', REPLACE(column_name, '`', '``'), '`') FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '"+
			strings.ReplaceAll(t, "'", "''")+"' AND column_name <> '"+generatedKey+"' ORDER BY ordinal_position")
		if err != nil {
			return nil, err
		}
		// By name, since * leaves invisible columns out.
		if out[t], err = m.sum(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM `"+strings.ReplaceAll(t, "`", "``")+"`"); err != nil {
			return nil, err
		}
	}
	for name, query := range mySQLCatalog {
		if out[name], err = m.sum(ctx, query); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *mySQL) sum(ctx context.Context, query string) (*sum, error) {
	s := &sum{}
	return s, m.each(ctx, query, func(values [][]byte) { s.add(values...) })
}

// each calls do for each row of a query, with the values as text.
func (m *mySQL) each(ctx context.Context, query string, do func([][]byte)) error {
	rows, err := m.db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("cannot read (%s): %w", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return fmt.Errorf("cannot read (%s): %w", query, err)
	}
	values, into := make([]sql.RawBytes, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return fmt.Errorf("cannot read a row of (%s): %w", query, err)
		}
		row := make([][]byte, len(values))
		for i, v := range values {
			row[i] = v
		}
		do(row)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("cannot read (%s): %w", query, err)
	}
	return nil
}

func (m *mySQL) exec(ctx context.Context, statement string) ([]string, error) {
	var out []string
	return out, m.each(ctx, statement, func(values [][]byte) {
		if len(values) > 0 {
			out = append(out, string(values[0]))
		}
	})
}

func (m *mySQL) drop(ctx context.Context, database string) error {
	name := "`" + strings.ReplaceAll(database, "`", "``") + "`"
	if _, err := m.db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+name+"; CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("cannot make database %s anew: %w", database, err)
	}
	return nil
}
