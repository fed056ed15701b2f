package supervisor

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/instance"
)

// ledger writes rows through the primary, and records those that were acknowledged.
type ledger struct {
	w    *world
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	acked  map[int64]bool
	last   time.Time
	gap    time.Duration
	values int64
}

// clients is the user of the ledger.
const clients = "app"

// prepare creates what the ledger needs, over the primary's socket.
func (w *world) prepare() {
	w.t.Helper()
	err := w.execute(w.leader(),
		"CREATE USER app@'%' IDENTIFIED BY 'secret'", "GRANT ALL ON app.* TO app@'%'", "CREATE DATABASE app",
		"CREATE TABLE app.ledger (id BIGINT PRIMARY KEY, at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6))")
	if err != nil {
		w.t.Fatal(err)
	}
}

// execute executes statements over a server's socket.
func (w *world) execute(name string, statements ...string) error {
	return executeAt(w.server(name).Options.Socket(), statements...)
}

// hold executes a statement over a server's socket, in a session that stays until the returned function ends it, or the test
// does.
func (w *world) hold(name, statement string) func() {
	w.t.Helper()
	db, err := openSocket(w.server(name).Options.Socket())
	if err != nil {
		w.t.Fatal(err)
	}
	release := func() { _ = db.Close() }
	w.t.Cleanup(release)
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(w.t.Context(), statement); err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
	return release
}

// openSocket opens a server over its socket.
func openSocket(socket string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User = "unix", socket, instance.MySQLSuperuser
	config.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func executeAt(socket string, statements ...string) error {
	db, err := openSocket(socket)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.ExecContext(context.Background(), s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// query returns the only value of a query over a server's socket.
func (w *world) query(name, statement string) string {
	w.t.Helper()
	db, err := openSocket(w.server(name).Options.Socket())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var out string
	if err := db.QueryRowContext(w.t.Context(), statement).Scan(&out); err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
	return out
}

// open opens a database over the network, with TLS.
func (w *world) open(pod, user, password, database string) *sql.DB {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd, config.DBName = "tcp", w.address(pod), user, password, database
	config.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the test's own servers
	config.Timeout, config.ReadTimeout, config.WriteTimeout = time.Second, 15*time.Second, time.Second
	config.InterpolateParams, config.Logger = true, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return sql.OpenDB(connector)
}

// write starts writers that follow the primary.
func (w *world) write(writers int) *ledger {
	ctx, cancel := context.WithCancel(context.Background())
	l := &ledger{w: w, stop: cancel, acked: map[int64]bool{}, last: time.Now()}
	for range writers {
		l.done.Go(func() { l.run(ctx) })
	}
	return l
}

func (l *ledger) run(ctx context.Context) {
	var db *sql.DB
	var at string
	for ctx.Err() == nil {
		if to := l.w.leader(); to != at || db == nil {
			if db != nil {
				_ = db.Close()
			}
			if at = to; at == "" {
				db = nil
				time.Sleep(10 * time.Millisecond)
				continue
			}
			db = l.w.open(at, clients, "secret", "app")
		}
		l.mu.Lock()
		l.values++
		id := l.values
		l.mu.Unlock()
		one, cancel := context.WithTimeout(ctx, 3*time.Second)
		_, err := db.ExecContext(one, "INSERT INTO ledger (id) VALUES (?)", id)
		cancel()
		if err == nil {
			l.ack(id)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if db != nil {
		_ = db.Close()
	}
}

func (l *ledger) ack(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.acked[id] = true
	l.gap, l.last = max(l.gap, now.Sub(l.last)), now
}

// longest returns the longest time without an acknowledged write since it was last called.
func (l *ledger) longest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := max(l.gap, time.Since(l.last))
	l.gap = 0
	return gap
}

// acknowledged returns how many writes were acknowledged, and since how long ago the last one was.
func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

func (l *ledger) since() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.last)
}

// check ends the ledger, and fails the test unless all servers have each acknowledged row.
func (l *ledger) check() {
	l.w.t.Helper()
	l.stop()
	l.done.Wait()
	primary := l.w.leader()
	for n := range 3 {
		missing, rows := l.missing(pod(n), primary)
		if missing != 0 {
			l.w.t.Errorf("%s lacks %d of %d acknowledged rows", pod(n), missing, len(l.acked))
		}
		l.w.t.Logf("%s has %d rows, of which %d were acknowledged", pod(n), rows, len(l.acked))
	}
}

func (l *ledger) missing(name, primary string) (missing, rows int) {
	db := l.w.open(name, clients, "secret", "app")
	defer func() { _ = db.Close() }()
	for tries := 0; ; tries++ {
		have, err := rowsOf(db)
		if err != nil {
			l.w.t.Fatalf("read %s: %v", name, err)
		}
		missing = 0
		for id := range l.acked {
			if !have[id] {
				missing++
			}
		}
		// A secondary applies what it has received a moment later.
		if missing == 0 || name == primary || tries > 50 {
			return missing, len(have)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// rowsOf returns the rows of the ledger in a database.
func rowsOf(db *sql.DB) (map[int64]bool, error) {
	rows, err := db.QueryContext(context.Background(), "SELECT id FROM ledger")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	have := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		have[id] = true
	}
	return have, rows.Err()
}
