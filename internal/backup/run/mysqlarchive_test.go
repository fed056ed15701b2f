package run

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/mysqltest"
)

// An archiving is an archive of binary logs that runs.
type archiving struct {
	mu   sync.Mutex
	last Archived
	stop func()

	// scratch is its folder for what was received.
	scratch string
}

// archive archives the binary logs of the fixture's server, until stop is called.
func (f *fixture) archive(t *testing.T) *archiving {
	t.Helper()
	return f.archiveAfter(t, 300*time.Millisecond)
}

// archiveAfter archives what was received for a while.
func (f *fixture) archiveAfter(t *testing.T, cutAfter time.Duration, with ...func(*Program)) *archiving {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Symlink(mysqltest.Beside(t, "mysqlbinlog"), filepath.Join(dir, "mysqlbinlog")))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	p := *f.Program
	quick := Pace{Cut: cutAfter, Compare: 500 * time.Millisecond, Hold: time.Second, Look: time.Second, Stall: time.Minute, Part: time.Minute, Behind: time.Minute, Held: pace.Held, Largest: pace.Largest}
	p.Scratch, p.Pace = t.TempDir(), &quick
	for _, w := range with {
		w(&p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := &archiving{scratch: p.Scratch}
	var done sync.WaitGroup
	done.Go(func() {
		err := p.ArchiveLogs(ctx, f.task, func(s Archived) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.last = s
		})
		if err != nil {
			t.Errorf("ArchiveLogs(): %v", err)
		}
	})
	a.stop = func() { cancel(); done.Wait() }
	t.Cleanup(a.stop)
	return a
}

func (a *archiving) state() Archived {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// until waits until all is archived that was committed before now.
func (a *archiving) until(t *testing.T) {
	t.Helper()
	now := time.Now()
	for a.state().Until.Before(now) {
		if time.Since(now) > time.Minute {
			t.Fatalf("not all was archived: %+v", a.state())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// restored starts a server with the newest backup up to a time, or the newest if that is nil, and replays the archive.
func (f *fixture) restored(t *testing.T, until *time.Time) (*sql.DB, error) {
	t.Helper()
	return f.restoredTo(t, func(task *backup.Task) { task.Time = until })
}

// restoredTo is restored, with a target.
func (f *fixture) restoredTo(t *testing.T, at func(*backup.Task)) (*sql.DB, error) {
	t.Helper()
	f.t = t
	folder, m, err := f.fetch(at)
	if err != nil {
		return nil, err
	}
	db := start(t, folder)
	relay, err := binlog.NewRelay(t.Context(), db)
	must(t, err)
	task := f.task
	at(&task)
	if err := f.ReplayLogs(t.Context(), task, m, relay); err != nil {
		return nil, err
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*storeplane_restore*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v (%v)", left, err)
	}
	return db, nil
}

// transactions parses a set.
func transactions(t *testing.T, text string) gtid.Set {
	t.Helper()
	out, err := gtid.Parse(text)
	must(t, err)
	return out
}

// again kills the server and starts it again.
func (c *copied) again() {
	c.down()
	c.up()
}

// await waits until a condition is met.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// archivedOf returns the transactions that are in segments.
func (f *fixture) archivedOf(t *testing.T) gtid.Set {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(f.Volume, backup.BinaryLogs(f.folder()), "*", backup.ManifestObject))
	must(t, err)
	var out gtid.Set
	for _, name := range names {
		m := backup.Manifest{}
		decode(t, name, &m)
		out = out.Union(transactions(t, m.Position))
	}
	return out
}

// slow returns a folder with a connection to the server by which some bytes arrive in a second.
func (f *fixture) slow(t *testing.T, c *copied, rate int64) string {
	t.Helper()
	at, err := url.Parse(c.uri(""))
	must(t, err)
	server := at.Host
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go pass(t.Context(), client, server, rate)
		}
	}()
	at.Host = l.Addr().String()
	authority, err := os.ReadFile(filepath.Join(f.Source, "ca.crt"))
	must(t, err)
	dir := t.TempDir()
	write(t, dir, map[string]string{"uri": at.String(), "ca.crt": string(authority)})
	return dir
}

// pass passes on what a client and a server send, and some bytes of the server in a second.
func pass(ctx context.Context, client net.Conn, server string, rate int64) {
	defer func() { _ = client.Close() }()
	to, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, client)
		_ = to.Close()
	}()
	const parts = 20
	for {
		if _, err := io.CopyN(client, to, rate/parts); err != nil {
			return
		}
		time.Sleep(time.Second / parts)
	}
}

// archiveLost: the primary hangs, and what was received of it is in the store.
func (f *fixture) archiveLost(t *testing.T, c *copied) {
	t.Helper()
	a := f.archiveAfter(t, time.Hour)
	const note = "received before the primary was lost"
	before := transactions(t, position(t, c.root))
	c.exec(t, "INSERT INTO shop.orders (n, note) VALUES (0, '"+note+"')")
	row := transactions(t, position(t, c.root)).Minus(before)
	await(t, "the row is received", func() bool {
		names, err := filepath.Glob(filepath.Join(a.scratch, receivedFolder+"*", "*"))
		must(t, err)
		return slices.ContainsFunc(names, func(name string) bool {
			content, err := os.ReadFile(name)
			return err == nil && bytes.Contains(content, []byte(note))
		})
	})
	if f.archivedOf(t).Contains(row) {
		t.Fatal("the row is in the store although it is not due")
	}
	content, err := os.ReadFile(value(t, c.root, "SELECT @@pid_file"))
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { must(t, syscall.Kill(pid, syscall.SIGCONT)) }()
	await(t, "the row of a primary that hangs is archived", func() bool { return f.archivedOf(t).Contains(row) })
	a.stop()
}

// archiveLarge: a transaction is archived that is larger than what is held, and one that is too large is a gap.
func (f *fixture) archiveLarge(t *testing.T, c *copied) {
	t.Helper()
	c.exec(t, "CREATE TABLE shop.large (n INT PRIMARY KEY, note LONGTEXT)")
	// A transaction arrives in more time than passes until the next look at it.
	source := f.slow(t, c, 2<<20)
	a := f.archiveAfter(t, 300*time.Millisecond, func(p *Program) { p.Source, p.Pace.Held, p.Pace.Largest = source, 1<<20, 4<<20 })
	c.exec(t, "INSERT INTO shop.large VALUES (1, REPEAT('x', 3145728))")
	a.until(t)
	if lost := a.state().Missing; !lost.IsEmpty() {
		t.Errorf("%s are missing", lost)
	}
	before := transactions(t, position(t, c.root))
	c.exec(t, "INSERT INTO shop.large VALUES (2, REPEAT('x', 8388608))")
	large := transactions(t, position(t, c.root)).Minus(before)
	c.exec(t, "INSERT INTO shop.large VALUES (3, 'small')")
	a.until(t)
	if diff := cmp.Diff(large.String(), a.state().Missing.String()); diff != "" {
		t.Errorf("missing: -want, +got:\n%s", diff)
	}
	f.t = t
	if _, err := f.restored(t, nil); backup.ReasonOf(err) != backup.ArchiveGap {
		t.Errorf("ReplayLogs() without a transaction that is too large: want reason %s, got %v", backup.ArchiveGap, err)
	}
	f.succeed(backup.Backup)
	await(t, "the backup ends the gap", func() bool { return !a.state().Ended.IsZero() })
	a.until(t)
	a.stop()
	db, err := f.restored(t, nil)
	must(t, err)
	if got := value(t, db, "SELECT GROUP_CONCAT(LENGTH(note) ORDER BY n) FROM shop.large"); got != "3145728,8388608,5" {
		t.Errorf("notes after the gap: %s", got)
	}
}

// archiveFaults: the server ends in order, is not the primary any more, and the newest segment is lost.
func (f *fixture) archiveFaults(t *testing.T, c *copied, a *archiving) {
	t.Helper()
	c.exec(t, "SHUTDOWN")
	c.again()
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (18)")
	a.until(t)

	c.exec(t, "SET GLOBAL super_read_only = ON")
	const problem = "the server is not the primary any more"
	for began := time.Now(); !strings.Contains(a.state().Problem, problem); time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("a server that is read-only counts as the primary: %+v", a.state())
		}
	}
	before := a.state().Until
	time.Sleep(3 * time.Second)
	if got := a.state().Until; !got.Equal(before) {
		t.Errorf("the archive reaches to %s by a server that is read-only, and reached to %s", got, before)
	}
	c.exec(t, "SET GLOBAL super_read_only = OFF")
	a.until(t)
	a.stop()

	folder := filepath.Join(f.Volume, backup.BinaryLogs(f.folder()))
	entries, err := os.ReadDir(folder)
	must(t, err)
	// What came after the newest record may be lost unnoticed.
	recorded := segment.Reached{}
	decode(t, filepath.Join(folder, reachedObject("one")), &recorded)
	for _, e := range slices.Backward(entries) {
		if !e.IsDir() {
			continue
		}
		m := backup.Manifest{}
		decode(t, filepath.Join(folder, e.Name(), "manifest.json"), &m)
		must(t, os.RemoveAll(filepath.Join(folder, e.Name())))
		if has, err := gtid.Parse(m.Position); err != nil || recorded.Executed.Contains(has) {
			must(t, err)
			break
		}
	}
	f.t = t
	if _, err := f.restored(t, nil); backup.ReasonOf(err) != backup.ArchiveGap {
		t.Errorf("ReplayLogs() without the newest segment: want reason %s, got %v", backup.ArchiveGap, err)
	}
	must(t, os.WriteFile(filepath.Join(folder, reachedObject("one")), []byte(`{"system": "one"}`), 0o600))
	if _, err := f.restored(t, nil); backup.ReasonOf(err) != backup.ArchiveGap || !strings.Contains(err.Error(), "missing or not authentic") {
		t.Errorf("ReplayLogs() with a record that somebody has written: want reason %s, got %v", backup.ArchiveGap, err)
	}
}

// decode reads a file of JSON.
func decode(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(name)
	must(t, err)
	must(t, json.Unmarshal(content, into))
}

// archiveParted: another history begins, and then the store loses all backups.
func (f *fixture) archiveParted(t *testing.T, c *copied) {
	t.Helper()
	a := f.archive(t)
	a.until(t)
	c.exec(t, "ALTER USER "+dumperUser+`@'%' ATTRIBUTE '{"`+instance.MySQLSystemAttribute+`": "two"}'`)
	c.again()
	is := func(what string, is func(Archived) bool) {
		t.Helper()
		for began := time.Now(); !is(a.state()); time.Sleep(50 * time.Millisecond) {
			if time.Since(began) > 30*time.Second {
				t.Fatalf("%s: the archive is %+v", what, a.state())
			}
		}
	}
	is("another history has no backup", func(s Archived) bool { return s.System == "two" && !s.BackedUp && !s.Until.IsZero() })
	f.t, f.task.System = t, "two"
	f.succeed(backup.Backup)
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (19)")
	is("it has", func(s Archived) bool { return s.BackedUp })
	a.until(t)
	db, err := f.restored(t, nil)
	must(t, err)
	if got := value(t, db, "SELECT MAX(n) FROM shop.orders"); got != "19" {
		t.Errorf("orders of the other history: want 19, got %s", got)
	}
	copies, err := filepath.Glob(filepath.Join(f.Volume, f.folder(), string(backupv1.Physical), "2*"))
	must(t, err)
	if len(copies) == 0 {
		t.Fatalf("there are no backups in %s", f.folder())
	}
	for _, name := range copies {
		must(t, os.RemoveAll(name))
	}
	is("nothing can be restored", func(s Archived) bool { return !s.BackedUp && s.Missing.Len() > 0 && s.Ended.IsZero() })
	f.t = t
	f.succeed(backup.Backup)
	is("the next backup has all", func(s Archived) bool { return s.BackedUp && !s.Ended.IsZero() })
}

// TestMySQLArchiveLost: what was received is archived when the primary hangs, and a large transaction as far as may be.
func TestMySQLArchiveLost(t *testing.T) {
	c := startCopied(t)
	f := c.fixture(t, newVolume(t))
	f.encrypted()
	c.exec(t, "GRANT REPLICATION SLAVE ON *.* TO "+dumperUser+"@'%'", "DROP EVENT shop.tick", "CREATE TABLE shop.orders (n INT PRIMARY KEY, note TEXT)")
	f.succeed(backup.Backup)
	f.archiveLost(t, c)
	f.archiveLarge(t, c)
}

// TestMySQLArchive: what is written after a backup is archived, and restored to any time.
func TestMySQLArchive(t *testing.T) {
	c := startCopied(t)
	f := c.fixture(t, newVolume(t))
	f.encrypted()
	c.exec(t, "GRANT REPLICATION SLAVE ON *.* TO "+dumperUser+"@'%'", "CREATE TABLE shop.orders (n INT PRIMARY KEY, note TEXT)")
	order := func(from, to int) {
		t.Helper()
		for n := from; n <= to; n++ {
			c.exec(t, fmt.Sprintf("INSERT INTO shop.orders VALUES (%d, REPEAT('x', %d))", n, n*1000))
		}
	}
	orders := func(db *sql.DB) string { return value(t, db, "SELECT CONCAT(COUNT(*), '-', MAX(n)) FROM shop.orders") }
	now := func() *time.Time {
		// What is written next is committed later, and what was written before is not.
		time.Sleep(20 * time.Millisecond)
		out := time.Now()
		time.Sleep(20 * time.Millisecond)
		return &out
	}

	a := f.archive(t)
	a.until(t)
	order(1, 2)
	f.succeed(backup.Backup)
	order(3, 5)
	five := now()
	has := position(t, c.root)
	order(6, 6)
	six := transactions(t, position(t, c.root)).Minus(transactions(t, has)).String()
	order(7, 8)
	c.exec(t, "FLUSH BINARY LOGS", "ALTER TABLE shop.orders ADD COLUMN more INT")
	eight := now()
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (9)")
	a.until(t)
	// The connection is lost, and there is another primary.
	c.again()
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (10)")
	a.until(t)
	quiet := now()
	// The program is started again.
	a.stop()
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (11)")
	all := position(t, c.root)
	a = f.archive(t)
	a.until(t)

	for _, tc := range []struct {
		name  string
		until *time.Time
		want  string
	}{{"End", nil, "11-11"}, {"Time", five, "5-5"}, {"AfterDDL", eight, "8-8"}, {"AfterFailover", quiet, "10-10"}} {
		t.Run(tc.name, func(t *testing.T) {
			db, err := f.restored(t, tc.until)
			if err != nil {
				t.Fatalf("ReplayLogs(): %v", err)
			}
			if got := orders(db); got != tc.want {
				t.Errorf("orders: want %s, got %s", tc.want, got)
			}
			if tc.until == nil && value(t, db, fmt.Sprintf("SELECT GTID_SUBSET('%s', @@GLOBAL.gtid_executed)", all)) != "1" {
				t.Errorf("the server had %s, and the restored one has %s", all, position(t, db))
			}
			if sum, want := value(t, db, "SELECT SUM(CRC32(note)) FROM shop.orders WHERE n <= 5"), value(t, c.root, "SELECT SUM(CRC32(note)) FROM shop.orders WHERE n <= 5"); sum != want {
				t.Errorf("the notes differ: want %s, got %s", want, sum)
			}
		})
	}
	t.Run("Before", func(t *testing.T) {
		db, err := f.restoredTo(t, func(task *backup.Task) { task.Before = six })
		if err != nil {
			t.Fatalf("ReplayLogs(): %v", err)
		}
		if got := orders(db); got != "5-5" {
			t.Errorf("orders before transaction %s: want 5-5, got %s", six, got)
		}
	})
	t.Run("BeforeBackup", func(t *testing.T) {
		first := regexp.MustCompile(`:1-[0-9]+`).ReplaceAllString(has, ":1")
		if _, err := f.restoredTo(t, func(task *backup.Task) { task.Before = first }); backup.ReasonOf(err) != backup.BackupMissing || !strings.Contains(err.Error(), "all backups have transaction "+first+" already") {
			t.Errorf("before %s: want reason %s, got %v", first, backup.BackupMissing, err)
		}
	})
	t.Run("BeforeNothing", func(t *testing.T) {
		unknown := regexp.MustCompile(`[0-9]+$`).ReplaceAllString(six, "999999")
		if _, err := f.restoredTo(t, func(task *backup.Task) { task.Before = unknown }); backup.ReasonOf(err) != backup.BackupMissing || !strings.Contains(err.Error(), "transaction "+unknown+" is not in the archive") {
			t.Errorf("before %s: want reason %s, got %v", unknown, backup.BackupMissing, err)
		}
	})
	f.t = t
	t.Run("TooEarly", func(t *testing.T) {
		early := five.Add(-time.Hour)
		if _, err := f.restored(t, &early); backup.ReasonOf(err) != backup.BackupMissing {
			t.Errorf("want reason %s, got %v", backup.BackupMissing, err)
		}
	})
	t.Run("TooLate", func(t *testing.T) {
		late := time.Now().Add(time.Hour)
		if _, err := f.restored(t, &late); backup.ReasonOf(err) != backup.BackupMissing || !strings.Contains(err.Error(), "the archive of binary logs ends at") {
			t.Errorf("want reason %s, got %v", backup.BackupMissing, err)
		}
	})

	f.t = t
	if r := f.succeed(backup.Verify); r.Backup.Verified == nil {
		t.Errorf("it was verified with %+v", r)
	}

	// Binary logs are removed before they are archived.
	a.stop()
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (12)", "FLUSH BINARY LOGS")
	var log, skipped string
	var rest [3]sql.NullString
	must(t, c.root.QueryRowContext(t.Context(), "SHOW BINARY LOG STATUS").Scan(&log, &skipped, &rest[0], &rest[1], &rest[2]))
	c.exec(t, "PURGE BINARY LOGS TO '"+log+"'")
	a = f.archive(t)
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (13)")
	a.until(t)
	if a.state().Missing.Len() == 0 {
		t.Errorf("nothing is missing: %+v", a.state())
	}
	f.t = t
	if _, err := f.restored(t, nil); backup.ReasonOf(err) != backup.ArchiveGap {
		t.Errorf("ReplayLogs() over a gap: want reason %s, got %v", backup.ArchiveGap, err)
	}
	f.fail(backup.Verify, backup.ArchiveGap)
	if db, err := f.restored(t, quiet); err != nil {
		t.Errorf("ReplayLogs() to a time before the gap: %v", err)
	} else if got := orders(db); got != "10-10" {
		t.Errorf("orders before the gap: want 10-10, got %s", got)
	}
	f.succeed(backup.Backup)
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (14)")
	a.until(t)
	db, err := f.restored(t, nil)
	must(t, err)
	if got := orders(db); got != "14-14" {
		t.Errorf("orders after the gap: want 14-14, got %s", got)
	}

	// What was received becomes a segment although the program is stopped, before it is due.
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (15)")
	time.Sleep(2 * time.Second)
	a.stop()
	a = f.archiveAfter(t, time.Hour)
	c.exec(t, "SET GLOBAL event_scheduler = OFF", "INSERT INTO shop.orders (n) VALUES (16)")
	time.Sleep(3 * time.Second)
	a.stop()
	db, err = f.restored(t, nil)
	must(t, err)
	if got := orders(db); got != "16-16" {
		t.Errorf("orders when the program was stopped: want 16-16, got %s", got)
	}
	a = f.archive(t)

	f.succeed(backup.Verify)

	// Once the first backup expires, no restore needs what the next one has.
	segments := func() (n int) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(f.Volume, backup.BinaryLogs(f.folder())))
		must(t, err)
		return len(entries)
	}
	some := segments()
	f.succeed(backup.Backup, func(task *backup.Task) { task.Retention, task.Keep = "", &backupv1.Keep{Last: 2} })
	if left := segments(); left == 0 || left >= some {
		t.Errorf("%d of %d segments are left", left, some)
	}
	a.until(t)
	db, err = f.restored(t, nil)
	must(t, err)
	if got := orders(db); got != "16-16" {
		t.Errorf("orders after expiry: want 16-16, got %s", got)
	}
	a.stop()

	// Where all segments have expired, the archive goes on after the newest backup.
	f.succeed(backup.Backup, func(task *backup.Task) { task.Retention, task.Keep = "", &backupv1.Keep{Last: 1} })
	c.exec(t, "INSERT INTO shop.orders (n) VALUES (17)")
	a = f.archive(t)
	a.until(t)
	if lost := a.state().Missing; !lost.IsEmpty() {
		t.Errorf("%s are missing", lost)
	}
	db, err = f.restored(t, nil)
	must(t, err)
	if got := orders(db); got != "17-17" {
		t.Errorf("orders after the newest backup: want 17-17, got %s", got)
	}
	f.archiveFaults(t, c, a)
	f.archiveParted(t, c)
	f.succeed(backup.Delete)
	if left := (&destination{files: f.Volume}).objects(t); len(left) > 0 {
		t.Errorf("objects are left: %v", left)
	}
}
