package physical

import (
	"context"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// TestVerifySettings: settings that a database or a role has, a database that was not dropped to
// the end, and limits that only the command line of the backed up server raises, are no fault of a
// backup.
func TestVerifySettings(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// Patroni gives these parameters on the command line, too.
	c.run("pg_ctl", "-D", c.path("data"), "-w", "-m", "fast", "stop")
	c.startWith("-c max_connections=150")
	c.exec("ALTER SYSTEM SET max_connections = 50")
	for _, name := range []string{"shop", "archived", "dropped"} {
		c.exec("CREATE DATABASE " + name)
	}
	c.execIn("shop", "CREATE TABLE t AS SELECT id, md5(id::text) AS v FROM generate_series(1, 50000) id")
	c.execIn("shop", "CREATE INDEX ON t (v)")
	c.exec("ALTER DATABASE shop SET statement_timeout = '2ms'")
	c.exec("ALTER DATABASE shop SET search_path = other, public")
	c.exec("ALTER DATABASE archived SET default_transaction_read_only = on")
	c.exec("UPDATE pg_catalog.pg_database SET datconnlimit = -2 WHERE datname = 'dropped'")
	c.backUp("full")
	c.archive()

	task := c.task(backup.Verify)
	task.Query, task.QueryDatabase = "SELECT count(*) = 50000 AND current_setting('search_path') = 'other, public' FROM t", "shop"
	if r := c.do(task); r.Failure != nil {
		t.Errorf("verify: %+v", r.Failure)
	}
}

// TestVerifyInterrupted: a verification that is stopped says nothing about the backup.
func TestVerifyInterrupted(t *testing.T) {
	t.Parallel()
	c := filled(t, 2)
	p := c.places()
	defer c.serve(&p, testLog{t})()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	task := c.task(backup.Verify)
	task.Query = "SELECT pg_sleep(600) IS NOT NULL"
	reported := make(chan backup.Report)
	go func() { reported <- run(ctx, task, p, testLog{t}, time.Now) }()
	c.wait("the query to run", func() bool {
		conn, err := recovery.At(p.server())(t.Context(), "postgres")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		var n int
		err = conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'").Scan(&n)
		return err == nil && n > 0
	})
	cancel()
	if r := <-reported; r.Failure == nil || r.Failure.Reason != backup.Interrupted {
		t.Errorf("got %+v, want %s", r.Failure, backup.Interrupted)
	}
}
