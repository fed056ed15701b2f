package supervisor

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// TestOpens: a founder lets clients in although it refused that at first.
func TestOpens(t *testing.T) {
	w := newWorld(t, 1)
	var once sync.Once
	w.confirms = func(pod string) {
		once.Do(func() {
			if err := w.execute(pod, "SET GLOBAL super_read_only = ON"); err != nil {
				t.Error(err)
			}
		})
	}
	w.start(0)
	w.until("a confirmed founder", upWithin, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.record.Confirmed })
	if err := w.execute(pod(0), "SET GLOBAL super_read_only = OFF"); err != nil {
		t.Fatal(err)
	}
	w.until("clients to be let in", upWithin, func() bool {
		// A subquery of two rows is an error, and is executed only while no clients are let in.
		return w.execute(pod(0), "DO IF(@@offline_mode, (SELECT 1 UNION SELECT 2), 0)") == nil
	})
}

// TestUsers: users and databases come as desired on a real server, a second pass changes nothing, and
// each user reaches its own database with its password, and no other.
func TestUsers(t *testing.T) {
	w := newWorld(t, 1)
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	ctx, own := context.Background(), w.server(pod(0)).server
	users := []string{"app", "reports"}
	apply := func(password string) {
		t.Helper()
		if err := own.Dumper(ctx, "dumps"); err != nil {
			t.Fatal(err)
		}
		problems, err := own.Users(ctx, []server.Login{{Name: "app", Password: password}, {Name: "reports", Password: "other"}})
		if err != nil || len(problems) > 0 {
			t.Fatalf("Users(...): %v, %v", problems, err)
		}
		problems, err = own.Databases(ctx, []instance.Database{{Name: "app", Owner: "app"}, {Name: "a_b", Owner: "reports"}}, users)
		if err != nil || len(problems) > 0 {
			t.Fatalf("Databases(...): %v, %v", problems, err)
		}
	}
	before := func() string {
		t.Helper()
		r, err := w.server(pod(0)).Report(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r.Transactions.String()
	}
	apply("first")
	was := before()
	apply("first")
	if now := before(); now != was {
		t.Errorf("a second pass has changed something: %s became %s", was, now)
	}
	apply("it's a \\ \"password\" äß€")

	ping := func(user, password, database string) error {
		db := w.open(pod(0), user, password, database)
		defer func() { _ = db.Close() }()
		return db.PingContext(ctx)
	}
	for _, c := range []struct {
		user, password, database string
		want                     bool
	}{
		{"app", "it's a \\ \"password\" äß€", "app", true},
		{"app", "first", "app", false},
		{"app", "it's a \\ \"password\" äß€", "a_b", false},
		{"reports", "other", "a_b", true},
		{"root", "", "mysql", false},
		{server.User, "", "mysql", false},
	} {
		if err := ping(c.user, c.password, c.database); (err == nil) != c.want {
			t.Errorf("%s connects to %s with %q: got %v", c.user, c.database, c.password, err)
		}
	}
	if err := w.execute(pod(0), "CREATE DATABASE axb"); err != nil {
		t.Fatal(err)
	}
	if err := ping("reports", "other", "axb"); err == nil {
		t.Error("reports connects to axb, which is not its own")
	}

	// Another owner takes a database over, once.
	own2 := []instance.Database{{Name: "app", Owner: "app"}, {Name: "a_b", Owner: "app"}}
	for _, want := range []string{"", was} {
		was = before()
		if problems, err := own.Databases(ctx, own2, users); err != nil || len(problems) > 0 {
			t.Fatalf("Databases(...) with another owner: %v, %v", problems, err)
		}
		if now := before(); want != "" && now != was {
			t.Errorf("a second pass has changed something: %s became %s", was, now)
		}
	}
	if err := ping("reports", "other", "a_b"); err == nil {
		t.Error("reports still connects to a_b, which is not its own any more")
	}
	if err := ping("app", "it's a \\ \"password\" äß€", "a_b"); err != nil {
		t.Errorf("app connects to a_b, which is its own now: %v", err)
	}

	// The exporter's user reads statistics over the network alone, and no data.
	if err := own.Monitoring(ctx, "metrics"); err != nil {
		t.Fatal(err)
	}
	was = before()
	if err := own.Monitoring(ctx, "metrics"); err != nil || before() != was {
		t.Errorf("Monitoring(...) again: %v, %s became %s", err, was, before())
	}
	db := w.open(pod(0), instance.UserMonitoring, "metrics", "performance_schema")
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(ctx, "SELECT member_id FROM replication_group_members"); err != nil {
		t.Errorf("the exporter reads the members: %v", err)
	}
	if _, err := db.ExecContext(ctx, "SELECT user FROM mysql.user"); err == nil {
		t.Error("the exporter reads the users")
	}

	// The backups' user dumps each database, those too that no claim names, and changes none.
	db = w.open(pod(0), instance.MySQLBackupUser, "dumps", "")
	defer func() { _ = db.Close() }()
	for _, statement := range []string{"CREATE TABLE axb.t (n INT)", "CREATE PROCEDURE axb.p() SELECT 1", "CREATE EVENT axb.e ON SCHEDULE EVERY 1 DAY DO SELECT 1"} {
		if err := w.execute(pod(0), statement); err != nil {
			t.Fatal(err)
		}
	}
	for statement, want := range map[string]bool{
		"SELECT * FROM axb.t": true, "SHOW CREATE PROCEDURE axb.p": true, "SHOW CREATE EVENT axb.e": true,
		"SELECT user FROM mysql.user": false, "INSERT INTO axb.t VALUES (1)": false, "DROP TABLE axb.t": false, "CALL axb.p()": false,
	} {
		if _, err := db.ExecContext(ctx, statement); (err == nil) != want {
			t.Errorf("the backups' user executes %s: %v", statement, err)
		}
	}

	// Its attribute identifies the data, whatever its password is.
	identifies := func(db *sql.DB) string {
		t.Helper()
		var system string
		if err := db.QueryRowContext(ctx, "SELECT JSON_UNQUOTE(JSON_EXTRACT(attribute, '$."+instance.MySQLSystemAttribute+"')) FROM information_schema.user_attributes WHERE CONCAT(user, '@', host) = CURRENT_USER()").Scan(&system); err != nil {
			t.Fatal(err)
		}
		return system
	}
	system := identifies(db)
	if err := own.Dumper(ctx, "others"); err != nil {
		t.Fatal(err)
	}
	db = w.open(pod(0), instance.MySQLBackupUser, "others", "")
	defer func() { _ = db.Close() }()
	if now := identifies(db); system == "" || now != system {
		t.Errorf("the data is %q, and with another password %q", system, now)
	}
	// It becomes another one once, where what is written next does not follow on what is archived.
	for _, from := range []string{"another", system, system} {
		is := identifies(db)
		renewed, err := own.RenewSystem(ctx, from)
		if next := identifies(db); err != nil || renewed != (from == is) || renewed == (next == is) {
			t.Errorf("RenewSystem(%q) of data with identifier %q: got %t, %v, and identifier %q", from, is, renewed, err, next)
		}
	}
	// An owner takes a privilege away, by which triggers would be missing in dumps.
	if err := w.execute(pod(0), "REVOKE TRIGGER ON axb.* FROM storeplane_backup@'%'"); err != nil {
		t.Fatal(err)
	}
	apply("it's a \\ \"password\" äß€")
	if _, err := db.ExecContext(ctx, "SHOW CREATE TRIGGER axb.none"); err == nil || !strings.Contains(err.Error(), "1360") {
		t.Errorf("the backups' user reads no triggers: %v", err)
	}

	// What users' programs usually need.
	app := w.open(pod(0), "app", "it's a \\ \"password\" äß€", "app")
	defer func() { _ = app.Close() }()
	for _, statement := range []string{
		"CREATE TABLE plain (n INT)", "INSERT INTO plain VALUES (1)",
		"CREATE TRIGGER twice BEFORE INSERT ON plain FOR EACH ROW SET NEW.n = NEW.n * 2",
		"CREATE FUNCTION one() RETURNS INT NO SQL RETURN 1",
	} {
		if _, err := app.ExecContext(ctx, statement); err != nil {
			t.Errorf("app executes %s: %v", statement, err)
		}
	}
	for option, want := range map[string]string{"persisted_globals_load": "0", "relay_log_recovery": "0", "sync_binlog": "1", "local_infile": "0", "log_replica_updates": "1"} {
		var got string
		if err := app.QueryRowContext(ctx, "SELECT @@GLOBAL."+option).Scan(&got); err != nil || got != want {
			t.Errorf("option %s: got %q, %v, want %s", option, got, err, want)
		}
	}

	// A certificate that cannot be used is an error, and the one before goes on.
	if err := w.server(pod(0)).Reload(ctx); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(w.dir, "tls.key")
	good, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.server(pod(0)).Reload(ctx); err == nil {
		t.Error("a broken key is no error")
	}
	if err := ping("reports", "other", ""); err != nil {
		t.Errorf("after that no client connects: %v", err)
	}
	if err := os.WriteFile(key, good, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDescribesFailure: why MySQL does not start is known, and it is not started again and again.
func TestDescribesFailure(t *testing.T) {
	w := newWorld(t, 1)
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	w.leave(0)
	w.options = "no_such_option=1\n"
	w.start(0)
	w.until("the cause", upWithin, func() bool {
		held, _ := w.server(pod(0)).Held()
		return held.Message == "Waiting for MySQL to start: MySQL has ended with code 1: unknown variable 'no_such_option=1'."
	})
}
