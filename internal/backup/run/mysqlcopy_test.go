package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	enginemysql "github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pki"
)

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
	if _, _, err := p.Fetch(t.Context(), f.task, to); backup.ReasonOf(err) != backup.InvalidTask {
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
	f.unfetched(backup.InvalidTask, func(t *backup.Task) { t.ID, t.Time = one, new(time.Now().Add(-time.Hour)) })

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

// TestMySQLPhysicalHistory: no backup is made of data that lacks what is archived of it, nor of data that becomes another
// history while it is copied.
func TestMySQLPhysicalHistory(t *testing.T) {
	c := startCopied(t)
	f := c.fixture(t, newVolume(t))
	becomes := func(system string) {
		c.exec(t, "ALTER USER "+dumperUser+"@'%' ATTRIBUTE '{\""+instance.MySQLSystemAttribute+"\": \""+system+"\"}'")
	}
	f.Log = onLine{f.log, "copying the server", func() { becomes("two") }}
	r := f.fail(backup.Backup, backup.SourceUnreachable)
	if !strings.HasPrefix(r.Failure.Message, "the copy is of another history of the data") {
		t.Errorf("the data became another history: %s", r.Failure.Message)
	}
	f.Log = f.log

	logs := &job{Program: f.Program, task: f.task, hide: &secrets{}, log: discard}
	logs.task.Method = backup.BinaryLog
	must(t, logs.open(t.Context()))
	defer logs.close()
	const lost = "541947d5-eac4-11f1-aa87-02fc00000001:7"
	must(t, (&archiver{job: logs}).record(t.Context(), segment.Reached{System: "two", Executed: transactions(t, lost)}))
	var now atomic.Int64
	f.Now = func() time.Time { return time.Now().Add(time.Duration(now.Add(1)) * catchUpWithin) }
	r = f.fail(backup.Backup, backup.SourceUnreachable)
	if !strings.HasPrefix(r.Failure.Message, "the server lacks transactions that are archived of its data, 1 in all: "+lost) {
		t.Errorf("the data lacks what is archived: %s", r.Failure.Message)
	}
	f.Now = time.Now
	becomes("three")
	f.succeed(backup.Backup)
}
