package run

import (
	"context"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-sql-driver/mysql"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/mysqltest"
)

// A copied is a MySQL as a DatabaseCluster has it, of which physical backups are made.
type copied struct {
	*source

	// root is its superuser, and authority the file of the authority of its certificate.
	root      *sql.DB
	authority string
}

// accounts is a table whose sum is the same after each transaction of a writer, and accountRows the number of its rows.
const (
	accounts    = "shop.accounts"
	accountRows = 5000
)

// startCopied starts a MySQL with TLS, databases shop and other, and users for backups with and without the privilege.
func startCopied(t *testing.T) *copied {
	t.Helper()
	path := mysqltest.Program(t)
	d := daemon(t)
	// A wrapper of a server that is not installed for all users names its own.
	d.User = nil
	data, socket, port := filepath.Join(d.Dir, "data"), filepath.Join(d.Socket, "s"), freePort(t)
	common := slices.Concat([]string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + d.Dir}, asRoot())
	must(t, engine.Tool{Name: path, Args: append(common, "--initialize-insecure"), Dir: d.Dir, Stdout: discard}.Run(t.Context()))
	c := &copied{source: &source{engine: backupv1.MySQL}}
	var certificate, key string
	certificate, key, c.authority = certified(t)
	c.uri = func(string) string {
		return fmt.Sprintf("mysql://%s@127.0.0.1:%d/", url.UserPassword(dumperUser, password), port)
	}
	c.root = atSocket(t, socket)
	c.up = func() {
		// It listens at its port a moment before it does at its socket.
		must(t, d.Start(t.Context(), discard, c.root.PingContext, path, append(common, "--socket="+socket, "--pid-file="+filepath.Join(d.Dir, "pid"),
			"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--mysqlx=OFF", "--secure-file-priv=NULL", "--innodb-buffer-pool-size=32M", "--skip-name-resolve=ON",
			"--ssl-ca="+c.authority, "--ssl-cert="+certificate, "--ssl-key="+key, "--require-secure-transport=ON",
			// As on the servers of a DatabaseCluster.
			"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog", "--relay-log=relay", "--plugin-load-add=mysql_clone.so", "--plugin-load-add=group_replication.so",
			"--server-id=1", "--report-host=127.0.0.1", "--group-replication-start-on-boot=OFF", "--group-replication-group-name=8d1e5c5a-3c3f-4b39-9d56-3f3a1b0c7e11",
			"--group-replication-communication-stack=MYSQL", "--group-replication-local-address=127.0.0.1:"+strconv.Itoa(port), "--group-replication-ssl-mode=REQUIRED",
			"--group-replication-recovery-use-ssl=ON", "--sql-generate-invisible-primary-key=ON", "--event-scheduler=ON", "--character-set-server=latin1")...))
	}
	c.down = d.Kill
	c.up()
	const quoted = `'p4ss:w/rd@%7\\"\'#x'`
	c.exec(t,
		"SET sql_log_bin = 0", "CREATE USER replication@'%' IDENTIFIED BY 'secret'", "GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO replication@'%'", "SET sql_log_bin = 1",
		"CHANGE REPLICATION SOURCE TO SOURCE_USER = 'replication', SOURCE_PASSWORD = 'secret' FOR CHANNEL 'group_replication_recovery'",
		"SET GLOBAL group_replication_bootstrap_group = ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group = OFF",
		"INSTALL COMPONENT 'file://component_group_replication_elect_prefers_most_updated'",
		"CREATE USER "+dumperUser+"@'%' IDENTIFIED BY "+quoted+" WITH MAX_USER_CONNECTIONS 10 ATTRIBUTE '{\""+instance.MySQLSystemAttribute+"\": \"one\"}'",
		"GRANT SHOW_ROUTINE, BACKUP_ADMIN ON *.* TO "+dumperUser+"@'%'",
		"CREATE DATABASE shop", "CREATE DATABASE `other-1` CHARACTER SET utf8mb4",
		// A server names files of its own like that.
		"CREATE DATABASE ibtmp_orders", "CREATE TABLE ibtmp_orders.t (n INT PRIMARY KEY)",
		"CREATE TABLE "+accounts+" (id INT PRIMARY KEY, amount BIGINT NOT NULL, filler VARCHAR(200))",
		"CREATE TABLE `other-1`.`t/1` (word VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, UNIQUE KEY ((lower(word))))",
		"INSERT INTO `other-1`.`t/1` VALUES ('a'), ('b')",
		"CREATE TABLE shop.ticks (n INT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE shop.journal (n INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE EVENT shop.tick ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.ticks VALUES ()",
		"SET SESSION cte_max_recursion_depth = 100000",
		fmt.Sprintf("INSERT INTO "+accounts+" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i, 100, REPEAT(SHA2(i, 512), 1) FROM n", accountRows),
	)
	return c
}

// asRoot returns the option that a server needs to run as root.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// certified returns the files of a certificate for 127.0.0.1, its key and its authority.
func certified(t *testing.T) (certificate, key, authority string) {
	t.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	must(t, err)
	dir := t.TempDir()
	public := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	write(t, dir, map[string]string{"crt": public, "ca.crt": public, "key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))})
	return filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "ca.crt")
}

// atSocket connects to a server as its superuser.
func atSocket(t *testing.T, socket string) *sql.DB {
	t.Helper()
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr = instance.MySQLSuperuser, "unix", socket
	connector, err := mysql.NewConnector(c)
	must(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// exec executes statements on one connection.
func (c *copied) exec(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := c.root.Conn(t.Context())
	must(t, err)
	defer func() { _ = conn.Close() }()
	for _, s := range statements {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// value returns what a query returns in its only row.
func value(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var out string
	if err := db.QueryRowContext(t.Context(), query).Scan(&out); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// position returns the transactions of a server.
func position(t *testing.T, db *sql.DB) string {
	t.Helper()
	return strings.ReplaceAll(value(t, db, "SELECT @@GLOBAL.gtid_executed"), "\n", "")
}

// writers is how many clients write at once.
const writers = 4

// writing moves amounts between accounts, and records each transaction in a journal, until stop is called, which
// returns how often it did.
func (c *copied) writing(t *testing.T) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var n atomic.Int64
	for range writers {
		done.Go(func() {
			for ctx.Err() == nil {
				if err := c.move(ctx, int(n.Add(1))); err != nil && ctx.Err() == nil {
					t.Errorf("a write failed: %v", err)
					return
				}
			}
		})
	}
	return func() int64 {
		cancel()
		done.Wait()
		return n.Load()
	}
}

// move moves an amount from one account to another one.
func (c *copied) move(ctx context.Context, n int) error {
	tx, err := c.root.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	from, to := n%accountRows+1, (n*7+3)%accountRows+1
	for _, s := range []string{
		"INSERT INTO shop.journal VALUES ()",
		fmt.Sprintf("UPDATE "+accounts+" SET amount = amount - 1 WHERE id = %d", min(from, to)),
		fmt.Sprintf("UPDATE "+accounts+" SET amount = amount + 1 WHERE id = %d", max(from, to)),
	} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// unrecorded returns how many more transactions a server has by its position than by its tables. It is the same
// whenever both belong together: a table has a row for each.
func unrecorded(t *testing.T, db *sql.DB) int {
	t.Helper()
	n := 0
	for i, part := range strings.Split(position(t, db), ":") {
		if i == 0 {
			continue
		}
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		a, err := strconv.Atoi(first)
		must(t, err)
		b, err := strconv.Atoi(last)
		must(t, err)
		n += b - a + 1
	}
	rows, err := strconv.Atoi(value(t, db, "SELECT (SELECT COUNT(*) FROM shop.journal) + (SELECT COUNT(*) FROM shop.ticks)"))
	must(t, err)
	return n - rows
}

// fixture returns a fixture for physical backups of the server.
func (c *copied) fixture(t *testing.T, d *destination) *fixture {
	t.Helper()
	f := newFixture(t, c.source, "", d)
	f.task.Method, f.task.Name = backupv1.Physical, "ledger-physical"
	authority, err := os.ReadFile(c.authority)
	must(t, err)
	write(t, f.Source, map[string]string{"ca.crt": string(authority)})
	// Its servers run as another user, which needs to find the program.
	dir := t.TempDir()
	must(t, os.Symlink(mysqltest.Program(t), filepath.Join(dir, "mysqld")))
	openUp(t, dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return f
}

// encrypted gives a fixture a new key, and returns it.
func (f *fixture) encrypted() string {
	f.t.Helper()
	i, err := age.GenerateX25519Identity()
	must(f.t, err)
	f.task.Encrypted = true
	write(f.t, "", map[string]string{f.Key: i.String() + "\n"})
	return i.String() + "\n"
}

// fetch fetches the backup that a Task chooses into a new folder.
func (f *fixture) fetch(with ...func(*backup.Task)) (string, *backup.Manifest, error) {
	f.t.Helper()
	task := f.task
	for _, w := range with {
		w(&task)
	}
	to := filepath.Join(f.t.TempDir(), "data")
	p := &Program{Store: f.Store, Key: f.Key, Volume: f.Volume, Log: f.log, Now: time.Now}
	m, unpin, err := p.Fetch(f.t.Context(), task, to)
	if err == nil {
		unpin()
	} else {
		f.t.Logf("%s: %v", backup.ReasonOf(err), err)
		for _, path := range []string{to, to + partSuffix} {
			if _, e := os.Lstat(path); !errors.Is(e, os.ErrNotExist) {
				f.t.Errorf("a failed Fetch has left %s (%v)", path, e)
			}
		}
	}
	return to, m, err
}

// unfetched checks that no backup is fetched for a reason, and returns the message.
func (f *fixture) unfetched(reason backup.Reason, with ...func(*backup.Task)) string {
	f.t.Helper()
	_, _, err := f.fetch(with...)
	if backup.ReasonOf(err) != reason {
		f.t.Fatalf("Fetch(): want reason %s, got %q: %v", reason, backup.ReasonOf(err), err)
	}
	return err.Error()
}

// manifest reads the manifest of a backup.
func (f *fixture) manifest(id string) *backup.Manifest {
	f.t.Helper()
	content, err := os.ReadFile(filepath.Join(f.Volume, backup.Physical(f.folder()), id, backup.ManifestObject))
	must(f.t, err)
	m := &backup.Manifest{}
	must(f.t, json.Unmarshal(content, m))
	return m
}

// start starts a server on a folder of data, as the supervisor of a DatabaseCluster would.
func start(t *testing.T, data string) *sql.DB {
	t.Helper()
	d := daemon(t)
	d.User = nil
	socket := filepath.Join(d.Socket, "s")
	db := atSocket(t, socket)
	must(t, d.Start(t.Context(), discard, db.PingContext, mysqltest.Program(t), append([]string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + d.Dir, "--socket=" + socket,
		"--pid-file=" + filepath.Join(d.Dir, "pid"), "--skip-networking", "--mysqlx=OFF", "--innodb-buffer-pool-size=32M",
		"--secure-file-priv=NULL", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin=binlog", "--event-scheduler=OFF"}, asRoot()...)...))
	return db
}
