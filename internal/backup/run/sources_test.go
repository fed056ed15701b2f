package run

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// sources holds the functions that start a server, by engine.
var sources = map[backupv1.Engine]func(*testing.T) *source{
	backupv1.PostgreSQL: startPostgreSQL,
	backupv1.MySQL:      startMariaDB,
	backupv1.MongoDB:    startFerretDB,
}

// daemon returns a daemon that runs a server for a test.
func daemon(t *testing.T) *engine.Daemon {
	t.Helper()
	d, err := engine.NewDaemon("", "")
	must(t, err)
	t.Cleanup(d.Stop)
	return d
}

// startPostgreSQL starts PostgreSQL with a password.
func startPostgreSQL(t *testing.T) *source {
	t.Helper()
	need(t, "initdb", "postgres", "pg_dump", "pg_restore")
	d := daemon(t)
	data, pw, port := filepath.Join(d.Dir, "data"), filepath.Join(d.Socket, "pw"), freePort(t)
	must(t, os.WriteFile(pw, []byte(password), 0o644))
	initdb, err := engine.Look("initdb")
	must(t, err)
	must(t, engine.Tool{
		Name: initdb, Args: []string{"--pgdata=" + data, "--username=shop", "--auth=scram-sha-256", "--pwfile=" + pw, "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"},
		Dir: d.Dir, User: d.User,
	}.Run(t.Context()))
	postgres, err := engine.Look("postgres")
	must(t, err)
	s := &source{engine: backupv1.PostgreSQL}
	s.uri = func(database string) string {
		return fmt.Sprintf("postgresql://%s@127.0.0.1:%d/%s", url.UserPassword("shop", password), port, url.PathEscape(database))
	}
	s.up = func() {
		// It accepts connections before it accepts logins.
		ready := func(ctx context.Context) error {
			return exec.CommandContext(ctx, "pg_isready", "--quiet", "--host=127.0.0.1", "--port="+strconv.Itoa(port)).Run()
		}
		must(t, d.Start(t.Context(), discard, ready, postgres, "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories="+d.Socket, "-c", "fsync=off"))
	}
	s.down = d.Kill
	s.up()
	return s
}

// startMariaDB starts MariaDB with a user that has a password.
func startMariaDB(t *testing.T) *source {
	t.Helper()
	need(t, "mariadb-install-db", "mariadbd", "mariadb-dump", "mariadb")
	d := daemon(t)
	data, socket, port := filepath.Join(d.Dir, "data"), filepath.Join(d.Socket, "s"), freePort(t)
	install, err := engine.Look("mariadb-install-db")
	must(t, err)
	common := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + d.Dir, "--innodb-log-file-size=16M"}
	must(t, engine.Tool{
		Name: install, Args: append(common, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"),
		Dir: d.Dir, User: d.User, Stdout: discard, Env: []string{"TMPDIR=" + d.Dir},
	}.Run(t.Context()))
	mariadbd, err := engine.Look("mariadbd", "/usr/sbin/mariadbd")
	must(t, err)
	init := filepath.Join(d.Socket, "init.sql")
	must(t, os.WriteFile(init, []byte(`CREATE OR REPLACE USER shop@'%' IDENTIFIED BY 'p4ss:w/rd@%7\\"\'#x';
GRANT ALL ON *.* TO shop@'%' WITH GRANT OPTION;`+"\n"), 0o644))
	s := &source{engine: backupv1.MySQL}
	s.uri = func(database string) string {
		return fmt.Sprintf("mysql://%s@127.0.0.1:%d/%s", url.UserPassword("shop", password), port, url.PathEscape(database))
	}
	s.up = func() {
		must(t, d.Start(t.Context(), discard, accepts(port), mariadbd, append(common, "--socket="+socket, "--pid-file="+filepath.Join(d.Dir, "pid"),
			"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", port), "--init-file="+init, "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve")...))
	}
	s.down = d.Kill
	s.up()
	return s
}

// startFerretDB starts FerretDB, which has no users.
func startFerretDB(t *testing.T) *source {
	t.Helper()
	onPath(t, "ferretdb", "mongodump", "mongorestore")
	d := daemon(t)
	port := freePort(t)
	data := filepath.Join(d.Dir, "data")
	must(t, os.Mkdir(data, 0o777))
	must(t, os.Chmod(data, 0o777)) //nolint:gosec // another user writes to it
	ferretdb, err := engine.Look("ferretdb")
	must(t, err)
	s := &source{engine: backupv1.MongoDB}
	s.uri = func(database string) string {
		return fmt.Sprintf("mongodb://127.0.0.1:%d/%s", port, url.PathEscape(database))
	}
	s.up = func() {
		must(t, d.Start(t.Context(), discard, accepts(port), ferretdb, "--handler=sqlite", "--sqlite-url=file:"+data+"/", "--state-dir="+d.Dir,
			fmt.Sprintf("--listen-addr=127.0.0.1:%d", port), "--debug-addr=-", "--telemetry=disable", "--log-level=error"))
	}
	s.down = d.Kill
	s.up()
	return s
}
