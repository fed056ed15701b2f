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
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	enginemysql "github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/mysqltest"
	"github.com/storeplane/storeplane/internal/pki"
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
	c.up = func() {
		must(t, d.Start(t.Context(), discard, accepts(port), path, append(common, "--socket="+socket, "--pid-file="+filepath.Join(d.Dir, "pid"),
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
	c.root = atSocket(t, socket)
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
	m, err := p.Fetch(f.t.Context(), task, to)
	if err != nil {
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

// TestMySQLPhysical: a MySQL is copied while it is written to, the copy is verified, and a server starts from it.
func TestMySQLPhysical(t *testing.T) {
	c := startCopied(t)
	f := c.fixture(t, newVolume(t))
	f.encrypted()
	f.succeed(backup.Check)

	before := position(t, c.root)
	stop := c.writing(t)
	made := f.succeed(backup.Backup)
	if n := stop(); n == 0 {
		t.Error("nothing was written meanwhile")
	}
	if words, err := os.ReadFile(filepath.Join(f.Socket, "words")); err != nil || len(words) == 0 || strings.Contains(string(words), "p4ss") {
		t.Errorf("the output of the throw-away server is empty, or has the password (%v):\n%s", err, words)
	}
	if catalog := made.Catalog; catalog == nil || catalog.Count != 1 || catalog.System != "one" {
		t.Errorf("want one backup of system one, got %+v", catalog)
	}
	m := f.manifest(made.Backup.ID)
	if m.Method != backupv1.Physical || len(m.Dumps) != 1 || m.Dumps[0].Database != "" || m.Server != value(t, c.root, "SELECT VERSION()") {
		t.Errorf("the manifest is %+v", m)
	}
	if diff := cmp.Diff([]string{"ibtmp_orders", "other-1", "shop"}, m.Databases); diff != "" {
		t.Errorf("databases of the manifest: -want, +got:\n%s", diff)
	}
	for _, o := range m.Dumps[0].Objects {
		if !strings.HasSuffix(o.Name, ".tar.zst.age") {
			t.Errorf("an object is named %s", o.Name)
		}
	}
	// It has all that was written before it began, and nothing that the server does not have.
	for _, pair := range [][2]string{{before, m.Position}, {m.Position, position(t, c.root)}} {
		if got := value(t, c.root, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", pair[0], pair[1])); got != "1" {
			t.Errorf("transactions %s are not all in %s", pair[0], pair[1])
		}
	}
	if left, err := os.ReadDir(f.Scratch); err != nil || len(left) > 1 {
		t.Errorf("beside the authority is left %v (%v)", left, err)
	}

	verified := f.succeed(backup.Verify)
	if verified.Rows < accountRows+2 || verified.Backup.Verified == nil || !slices.Equal(verified.Databases, m.Databases) {
		t.Errorf("it was verified with %+v", verified)
	}
	with := func(database, q string) func(*backup.Task) {
		return func(t *backup.Task) { t.QueryDatabase, t.Query = database, q }
	}
	f.succeed(backup.Verify, with("shop", fmt.Sprintf("SELECT SUM(amount) = %d FROM accounts", 100*accountRows)))
	f.fail(backup.Verify, backup.ContentDiffers, with("", "SELECT COUNT(*) > 2 FROM `t/1`"))

	to, fetched, err := f.fetch()
	must(t, err)
	if diff := cmp.Diff(m, fetched); diff != "" {
		t.Errorf("manifest of what was fetched: -want, +got:\n%s", diff)
	}
	for _, name := range []string{"auto.cnf", "#innodb_temp", "#clone", "server-key.pem", "private_key.pem"} {
		if _, err := os.Lstat(filepath.Join(to, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is in the backup (%v)", name, err)
		}
	}
	db := start(t, to)
	if got := position(t, db); got != m.Position {
		t.Errorf("a server has the transactions %q, and the backup has %q", got, m.Position)
	}
	if a, b := value(t, db, "SELECT @@server_uuid"), value(t, c.root, "SELECT @@server_uuid"); a == b {
		t.Errorf("two servers have the UUID %s", a)
	}
	if got, want := value(t, db, "SELECT CONCAT(COUNT(*), ' rows, sum ', SUM(amount)) FROM "+accounts), fmt.Sprintf("%d rows, sum %d", accountRows, 100*accountRows); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	checksum := "SELECT GROUP_CONCAT(word ORDER BY word) FROM `other-1`.`t/1`"
	if got, want := value(t, db, checksum), value(t, c.root, checksum); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	c.exec(t, "SET GLOBAL event_scheduler = OFF", "DROP EVENT shop.tick")
	if got, want := unrecorded(t, db)+1, unrecorded(t, c.root); got != want {
		t.Errorf("the position and the tables of the backup do not belong together: %d transactions are in no table, want %d", got, want)
	}
	// It is writable, and begins a history of its own.
	if _, err := db.ExecContext(t.Context(), "INSERT INTO `other-1`.`t/1` VALUES ('c')"); err != nil {
		t.Errorf("the server cannot be written to: %v", err)
	}

	f.fail(backup.Restore, backup.InvalidTask)
	f.succeed(backup.Delete)
	if left := (&destination{files: f.Volume}).objects(t); len(left) > 0 {
		t.Errorf("objects are left: %v", left)
	}
}

// TestMySQLPhysicalChoice: which backup is fetched, and into what.
func TestMySQLPhysicalChoice(t *testing.T) {
	c := startCopied(t)
	d := newVolume(t)
	f := c.fixture(t, d)
	f.unfetched(backup.BackupMissing)
	one := f.succeed(backup.Backup).Backup.ID
	if _, _, err := f.fetch(); err != nil {
		t.Fatalf("Fetch(): %v", err)
	}

	to := t.TempDir()
	p := &Program{Store: f.Store, Volume: f.Volume, Log: discard, Now: time.Now}
	if _, err := p.Fetch(t.Context(), f.task, to); backup.ReasonOf(err) != backup.InvalidTask {
		t.Errorf("Fetch() into a folder that exists: want reason %s, got %v", backup.InvalidTask, err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("a folder that exists has now %v (%v)", left, err)
	}
	f.unfetched(backup.InvalidTask, func(t *backup.Task) { t.Method = backupv1.Logical })
	// A dump of the same name is none.
	f.unfetched(backup.BackupMissing, func(t *backup.Task) { t.Name = "nightly" })

	// The database is lost, and another one has its name.
	c.exec(t, "ALTER USER "+dumperUser+"@'%' ATTRIBUTE '{\""+instance.MySQLSystemAttribute+"\": \"two\"}'")
	two := f.succeed(backup.Backup).Backup.ID
	if message := f.unfetched(backup.InvalidTask); !strings.Contains(message, "there are 1 of one") || !strings.Contains(message, "restoreFrom.systemIdentifier") {
		t.Errorf("it does not list the other one: %s", message)
	}
	cases := map[string]struct {
		reason string
		choose func(*backup.Task)
		want   string
	}{
		"Other": {reason: "The lost one's is named.", choose: func(t *backup.Task) { t.System = "one" }, want: one},
		"Own":   {reason: "The newer one's is named.", choose: func(t *backup.Task) { t.System = "two" }, want: two},
		"ID":    {reason: "A backup is named.", choose: func(t *backup.Task) { t.ID = one }, want: one},
		"Time":  {reason: "A time is named.", choose: func(t *backup.Task) { t.Time = new(time.Now()) }, want: two},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.t = t
			_, m, err := f.fetch(tc.choose)
			if err != nil || m.ID != tc.want {
				t.Errorf("%s\nFetch(): want %s, got %+v: %v", tc.reason, tc.want, m, err)
			}
		})
	}
	f.t = t
	f.unfetched(backup.BackupMissing, func(t *backup.Task) { t.System = "three" })
	f.unfetched(backup.BackupMissing, func(t *backup.Task) { t.System, t.ID = "two", one })

	// Where a Backup's method was changed, each has a folder of its own.
	must(t, os.MkdirAll(filepath.Join(f.Volume, backup.Logical(f.folder())), 0o700))
	must(t, os.CopyFS(filepath.Join(f.Volume, backup.Logical(f.folder()), one), os.DirFS(filepath.Join(f.Volume, backup.Physical(f.folder()), one))))
	logical := c.fixture(t, d)
	logical.task.Method = backupv1.Logical
	logical.fail(backup.Restore, backup.InvalidTask)
}

// TestMySQLPhysicalFaults: what is not a good backup is neither made nor fetched.
func TestMySQLPhysicalFaults(t *testing.T) {
	long(t)
	c := startCopied(t)
	t.Run("Privilege", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		c.exec(t, "REVOKE BACKUP_ADMIN ON *.* FROM "+dumperUser+"@'%'")
		defer c.exec(t, "GRANT BACKUP_ADMIN ON *.* TO "+dumperUser+"@'%'")
		for _, action := range []backup.Action{backup.Check, backup.Backup} {
			if r := f.fail(action, backup.SourceDenied); !strings.Contains(r.Failure.Message, "BACKUP_ADMIN") {
				t.Errorf("the message does not name the privilege: %s", r.Failure.Message)
			}
		}
		nothingLeft(t, d)
	})
	t.Run("Authority", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		other, err := pki.Authority("other", pki.Pair{}, time.Now())
		must(t, err)
		write(t, f.Source, map[string]string{"ca.crt": other.Certificate})
		f.fail(backup.Backup, backup.SourceUnreachable)
		nothingLeft(t, d)
	})
	// What copies the server verifies its certificate too: the connection of the first test has not come so far.
	t.Run("CloneAuthority", func(t *testing.T) {
		f := c.fixture(t, newVolume(t))
		task := f.task
		task.Action = backup.Backup
		defer f.beServed(task)()
		remote := engine.Remote{Dir: f.Socket, Scratch: f.Scratch}
		must(t, remote.Await(t.Context()))
		conn, err := engine.ReadConnection(f.Source)
		must(t, err)
		donor, err := enginemysql.Open(conn, discard)
		must(t, err)
		defer donor.Close()
		recipient, err := enginemysql.Attach(remote, discard)
		must(t, err)
		defer recipient.Close()
		other, err := pki.Authority("other", pki.Pair{}, time.Now())
		must(t, err)
		write(t, f.Scratch, map[string]string{"other.crt": other.Certificate})
		must(t, os.Chmod(filepath.Join(f.Scratch, "other.crt"), 0o644)) //nolint:gosec // a certificate
		err = recipient.Clone(t.Context(), donor, filepath.Join(f.Scratch, "copy"), filepath.Join(f.Scratch, "other.crt"))
		if backup.ReasonOf(err) != backup.SourceUnreachable || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("Clone() from a server with a certificate of another authority: want reason %s, got %v", backup.SourceUnreachable, err)
		}
	})
	t.Run("NoAuthority", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		must(t, os.Remove(filepath.Join(f.Source, "ca.crt")))
		f.fail(backup.Backup, backup.SourceDenied)
		nothingLeft(t, d)
	})
	// A Restore that was stopped half-way leaves its lock: what the database holds is no backup's content.
	t.Run("Restoring", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		c.exec(t, "CREATE TABLE shop."+engine.LockName+" (id TINYINT PRIMARY KEY, record VARBINARY(2048) NOT NULL)",
			"INSERT INTO shop."+engine.LockName+` VALUES (1, '{"owner":"u","name":"shop/r","token":"t","beat":1,"backup":"b","began":true}')`)
		defer c.exec(t, "DROP TABLE shop."+engine.LockName)
		f.fail(backup.Backup, backup.TargetLocked)
		nothingLeft(t, d)
	})
	t.Run("NoThrowAway", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		dir := t.TempDir()
		t.Setenv("PATH", dir)
		f.fail(backup.Backup, backup.ToolFailed)
		nothingLeft(t, d)
	})
	t.Run("Scratch", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		tmpfs(t, f.Scratch, "230m")
		f.fail(backup.Backup, backup.NoSpace)
		nothingLeft(t, d)
		must(t, syscall.Mount("tmpfs", f.Scratch, "tmpfs", syscall.MS_REMOUNT, "mode=1777,size=1g"))
		f.succeed(backup.Backup)
		must(t, syscall.Mount("tmpfs", f.Scratch, "tmpfs", syscall.MS_REMOUNT, "mode=1777,size=16m"))
		f.fail(backup.Verify, backup.NoSpace)
	})
	t.Run("Key", func(t *testing.T) {
		f := c.fixture(t, newVolume(t))
		key := f.encrypted()
		f.succeed(backup.Backup)
		f.encrypted()
		f.unfetched(backup.KeyMissing)
		f.fail(backup.Verify, backup.KeyMissing)
		f.unfetched(backup.KeyMissing, func(t *backup.Task) { t.Encrypted = false })
		write(t, "", map[string]string{f.Key: key})
		if _, _, err := f.fetch(); err != nil {
			t.Errorf("Fetch() with the key: %v", err)
		}
	})
	t.Run("Content", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		made := f.succeed(backup.Backup)
		f.succeed(backup.Verify)
		object := filepath.Join(f.Volume, backup.Physical(f.folder()), made.Backup.ID, f.manifest(made.Backup.ID).Dumps[0].Objects[1].Name)
		content, err := os.ReadFile(object)
		must(t, err)
		damaged := slices.Clone(content)
		damaged[len(damaged)/2] ^= 1
		for name, change := range map[string]func() error{
			"Flipped": func() error { return os.WriteFile(object, damaged, 0o600) },
			"Shorter": func() error { return os.WriteFile(object, content[:1000], 0o600) },
			"Lost":    func() error { return os.Remove(object) },
		} {
			t.Run(name, func(t *testing.T) {
				f.t = t
				must(t, change())
				f.unfetched(backup.BackupCorrupt)
				f.fail(backup.Verify, backup.BackupCorrupt)
				must(t, os.WriteFile(object, content, 0o600))
			})
		}
		f.t = t
		if r := f.succeed(backup.Check); r.Catalog.Verified != nil {
			t.Errorf("a damaged backup counts as verified: %+v", r.Catalog.Verified)
		}
		f.succeed(backup.Verify)
	})
	t.Run("Forged", func(t *testing.T) {
		f := c.fixture(t, newVolume(t))
		f.encrypted()
		made := f.succeed(backup.Backup)
		file := filepath.Join(f.Volume, backup.Physical(f.folder()), made.Backup.ID, backup.ManifestObject)
		before, err := os.ReadFile(file)
		must(t, err)
		for field, forged := range map[string]any{"position": "", "databases": []string{"shop"}, "method": ""} {
			edit(t, file, func(m map[string]any) { m[field] = forged })
			f.unfetched(backup.BackupNotAuthentic)
			must(t, os.WriteFile(file, before, 0o600))
		}
		// Without a key there is no seal: the server shows that it has other transactions.
		plain := c.fixture(t, newVolume(t))
		made = plain.succeed(backup.Backup)
		file = filepath.Join(plain.Volume, backup.Physical(plain.folder()), made.Backup.ID, backup.ManifestObject)
		edit(t, file, func(m map[string]any) { m["position"] = m["position"].(string) + "0" })
		plain.fail(backup.Verify, backup.ContentDiffers)
	})
	t.Run("Cancelled", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		log := f.Log
		f.Log = onLine{log, "archiving the copy", cancel}
		r, code := f.do(ctx, backup.Backup)
		f.Log = log
		f.failed(r, code, backup.Interrupted)
		nothingLeft(t, d)
	})
	t.Run("Down", func(t *testing.T) {
		d := newVolume(t)
		f := c.fixture(t, d)
		c.down()
		defer c.up()
		f.fail(backup.Check, backup.SourceUnreachable)
		f.fail(backup.Backup, backup.SourceUnreachable)
		nothingLeft(t, d)
	})
}
