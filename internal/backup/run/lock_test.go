package run

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// testBeat is the interval of lock renewals: short, but long enough for a busy machine.
const testBeat = 500 * time.Millisecond

// server connects to a source as the program does.
func (s *source) server(t *testing.T) engine.Server {
	t.Helper()
	c, err := engine.ParseURI(s.uri(""))
	must(t, err)
	server, err := open(s.engine, c, discard)
	must(t, err)
	t.Cleanup(server.Close)
	return server
}

// asUser returns a URI with another user, who has the same password.
func asUser(t *testing.T, uri, user string) string {
	t.Helper()
	u, err := url.Parse(uri)
	must(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

// by sets the Restore that runs a task.
func by(name string) func(*backup.Task) {
	return func(t *backup.Task) { t.Restore, t.UID = "shop/"+name, "uid-of-"+name }
}

func overwriting(t *backup.Task) { t.Overwrite = true }

// beside returns a fixture for another pod with the same backups.
func (f *fixture) beside(s *source, database string) *fixture {
	f.t.Helper()
	d := &destination{Destination: f.task.Destination, credentials: f.Store, volume: f.Volume}
	out := newFixture(f.t, s, database, d)
	out.LockBeat = testBeat
	return out
}

// locked puts a lock on a database, like one of a killed pod.
func locked(t *testing.T, server engine.Server, database string, l engine.Lock) {
	t.Helper()
	l.Token, l.Beat = "dead", 7
	before, err := server.Locked(t.Context(), database)
	must(t, err)
	ok, err := server.Swap(t.Context(), database, before, &l)
	must(t, err)
	if !ok {
		t.Fatal("the lock was not taken")
	}
}

// unlocked checks that a database has no lock.
func unlocked(t *testing.T, server engine.Server, database string) {
	t.Helper()
	l, err := server.Locked(t.Context(), database)
	must(t, err)
	if l != nil {
		t.Errorf("database %s is still locked: %+v", database, l)
	}
}

// TestLocks: restores lock their database, for each engine.
func TestLocks(t *testing.T) {
	for name, start := range sources {
		t.Run(string(name), func(t *testing.T) {
			if name != backupv1.PostgreSQL {
				long(t)
			}
			s := start(t)
			createDatabase(t, s, "shop")
			s.data(t, "shop", "load", "--rows=2000", "--bulk=5")
			f := newFixture(t, s, "shop", newVolume(t))
			f.LockBeat = testBeat
			f.succeed(backup.Backup)
			testLocks(t, s, f, s.sums(t, "shop"))
			t.Run("Overwriting", func(t *testing.T) { testOverwriting(t, s, f, s.sums(t, "shop")) })
		})
	}
}

func testLocks(t *testing.T, s *source, f *fixture, want string) {
	server := s.server(t)
	same := s.same
	half := s.half

	t.Run("TwoAtOnce", func(t *testing.T) {
		f.t = t
		pods := []*fixture{f.beside(s, "two"), f.beside(s, "two")}
		reports := make([]backup.Report, len(pods))
		var both sync.WaitGroup
		for i, p := range pods {
			both.Go(func() { reports[i], _ = p.do(t.Context(), backup.Restore, by([]string{"first", "second"}[i])) })
		}
		both.Wait()
		won := 0
		for i, r := range reports {
			switch {
			case r.Failure == nil:
				won++
			case r.Failure.Reason != backup.TargetLocked && r.Failure.Reason != backup.TargetNotEmpty:
				t.Errorf("the one that lost does not say so: %+v", r.Failure)
			default:
				t.Logf("%s: %s", r.Failure.Reason, r.Failure.Message)
				if other := []string{"shop/second", "shop/first"}[i]; r.Failure.Reason == backup.TargetLocked && !strings.Contains(r.Failure.Message, "database two is being restored by Restore "+other+": wait") {
					t.Errorf("it does not say who has it, and what to do: %s", r.Failure.Message)
				}
			}
		}
		if won != 1 {
			t.Errorf("%d of two restores into one database succeeded", won)
		}
		same(t, "two", want)
		unlocked(t, server, "two")
	})

	t.Run("Read", func(t *testing.T) {
		// A lock that is taken and released all the time can be read all the time.
		createDatabase(t, s, "read")
		ctx, cancel := context.WithCancel(t.Context())
		var taker sync.WaitGroup
		taker.Go(func() {
			defer cancel()
			for i := range 100 {
				l := engine.Lock{Owner: "uid-of-first", Token: "first", Beat: int64(i)}
				took, err := server.Swap(t.Context(), "read", nil, &l)
				if err == nil && took {
					_, err = server.Swap(t.Context(), "read", &l, nil)
				}
				if err != nil {
					t.Errorf("cannot take and release the lock: %v", err)
					return
				}
			}
		})
		other := s.server(t)
		for ctx.Err() == nil {
			if _, err := other.Locked(t.Context(), "read"); err != nil {
				t.Errorf("cannot read the lock: %v", err)
				break
			}
		}
		taker.Wait()
		unlocked(t, server, "read")
	})

	t.Run("Alive", func(t *testing.T) {
		f.t = t
		before := half(t, "alive")
		holder := &job{Program: &Program{LockBeat: testBeat, Log: discard}, task: backup.Task{Restore: "shop/first", UID: "uid-of-first"}, server: server, log: discard}
		h, err := holder.lock(t.Context(), "some", []string{"alive"})
		must(t, err)
		p := f.beside(s, "alive")
		p.fail(backup.Restore, backup.TargetLocked, by("second"))
		p.fail(backup.Restore, backup.TargetLocked, by("second"), overwriting)
		p.fail(backup.Restore, backup.TargetLocked, by("first"), overwriting)
		must(t, h.release())
		same(t, "alive", before)
		unlocked(t, server, "alive")
	})

	t.Run("AnswerLost", func(t *testing.T) {
		// The last renewal was interrupted, and the server had carried it out.
		holder := &job{Program: &Program{LockBeat: time.Hour, Log: discard}, task: backup.Task{Restore: "shop/first", UID: "uid-of-first"}, server: server, log: discard}
		h, err := holder.lock(t.Context(), "some", []string{"answer"})
		must(t, err)
		renewed := h.locks[0].lock
		renewed.Beat++
		ok, err := server.Swap(t.Context(), "answer", &h.locks[0].lock, &renewed)
		must(t, err)
		if !ok {
			t.Fatal("the lock was not renewed")
		}
		must(t, h.release())
		unlocked(t, server, "answer")
	})

	t.Run("Dead", func(t *testing.T) {
		f.t = t
		dead := engine.Lock{Owner: "uid-of-first", Name: "shop/first", Began: true}
		half(t, "dead")
		locked(t, server, "dead", dead)
		before := s.sums(t, "dead")
		p := f.beside(s, "dead")
		r := p.fail(backup.Restore, backup.TargetNotEmpty, by("second"))
		if !strings.Contains(r.Failure.Message, "which Restore shop/first left there when it was stopped half-way. Set overwrite") {
			t.Errorf("it does not say whose the content is: %s", r.Failure.Message)
		}
		same(t, "dead", before)
		// The first one may still continue.
		r = p.succeed(backup.Restore, by("first"))
		if r.Rows == 0 {
			t.Errorf("the report has no rows: %+v", r)
		}
		same(t, "dead", want)
		unlocked(t, server, "dead")

		// The first one does not continue once another one has replaced its content.
		half(t, "replaced")
		locked(t, server, "replaced", dead)
		p = f.beside(s, "replaced")
		p.succeed(backup.Restore, by("second"), overwriting)
		p.fail(backup.Restore, backup.TargetNotEmpty, by("first"))
		same(t, "replaced", want)
		unlocked(t, server, "replaced")

		// A restore that has written nothing does not block others.
		locked(t, server, "nothing", engine.Lock{Owner: "uid-of-first", Name: "shop/first"})
		f.beside(s, "nothing").succeed(backup.Restore, by("second"))
		same(t, "nothing", want)
		unlocked(t, server, "nothing")
	})

	t.Run("NotItsOwn", func(t *testing.T) {
		f.t = t
		half(t, "theirs")
		// It was killed before it had checked whether the database is empty.
		locked(t, server, "theirs", engine.Lock{Owner: "uid-of-first", Name: "shop/first"})
		before := s.sums(t, "theirs")
		f.beside(s, "theirs").fail(backup.Restore, backup.TargetNotEmpty, by("first"))
		same(t, "theirs", before)
	})

	t.Run("Application", func(t *testing.T) {
		// An application, which knows nothing of locks, writes while a backup is restored.
		moments := map[string]string{"early": "reading the backup of database", "late": "restoring database"}
		want := half(t, "alone")
		for database, moment := range moments {
			if database == "late" && s.engine == backupv1.MongoDB {
				continue // documents of both are in one collection then
			}
			f.t = t
			createDatabase(t, s, database)
			p := f.beside(s, database)
			p.Log = onLine{p.log, moment, func() { s.data(t, database, "load", "--rows=10", "--bulk=1") }}
			p.fail(backup.Restore, backup.TargetNotEmpty, by("first"))
			same(t, database, want)
			unlocked(t, server, database)
		}
	})

	t.Run("Atomic", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("only PostgreSQL creates tables in a transaction")
		}
		f.t = t
		createDatabase(t, s, "plain")
		s.data(t, "plain", "exec", "CREATE TABLE a (n int); INSERT INTO a VALUES (1); CREATE TABLE b (n int)")
		p := f.beside(s, "plain")
		p.task.Name = "plain"
		p.succeed(backup.Backup)
		createDatabase(t, s, "plain_copy")
		p.from(s, "plain_copy")
		p.Log = onLine{p.log, "restoring database", func() { s.data(t, "plain_copy", "exec", "CREATE TABLE b (n int); INSERT INTO b VALUES (2)") }}
		p.fail(backup.Restore, backup.TargetNotEmpty, by("first"))
		got, err := server.Count(t.Context(), "plain_copy")
		must(t, err)
		if diff := cmp.Diff(map[string]int64{`public.b`: 1}, got); diff != "" {
			t.Errorf("something else is left than what another client wrote: -want, +got:\n%s", diff)
		}
		unlocked(t, server, "plain_copy")
	})

	t.Run("Second", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("what a retry finds does not depend on the engine")
		}
		f.t = t
		p := f.beside(s, "postgres")
		p.task.Name = "both"
		p.task.Database.Databases = []string{"first_db", "second_db"}
		for _, d := range p.task.Database.Databases {
			createDatabase(t, s, d)
			s.data(t, d, "exec", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
		}
		first := p.succeed(backup.Backup).Backup.ID
		for _, d := range p.task.Database.Databases {
			s.data(t, d, "exec", "DROP TABLE t")
		}
		ctx, stop := context.WithCancel(t.Context())
		log := p.Log
		p.Log = onLine{p.log, "restoring database second_db", stop}
		p.do(ctx, backup.Restore, by("first"))
		p.Log = log
		if l, err := server.Locked(t.Context(), "first_db"); err != nil || l == nil || !l.Began {
			t.Errorf("the lock of the database that was restored is gone: %+v, %v", l, err)
		}
		if r := p.fail(backup.Restore, backup.TargetNotEmpty, by("second")); !strings.Contains(r.Failure.Message, "which Restore shop/first restored") {
			t.Errorf("it does not say whose the content is: %s", r.Failure.Message)
		}
		// What an application writes into the database that is whole is not dropped by the retry, which
		// restores the others from the same backup, though there is a newer one.
		s.data(t, "first_db", "exec", "INSERT INTO t VALUES (2)")
		s.data(t, "second_db", "exec", "CREATE TABLE t (n int); INSERT INTO t VALUES (3), (4), (5)")
		p.succeed(backup.Backup)
		s.data(t, "second_db", "exec", "DROP TABLE t")
		r := p.succeed(backup.Restore, by("first"))
		if diff := cmp.Diff([]string{"first_db", "second_db"}, r.Databases); diff != "" || r.Rows != 2 || r.Backup.ID != first {
			t.Errorf("the report has %d rows of backup %s, want 2 of %s: -want, +got:\n%s", r.Rows, r.Backup.ID, first, diff)
		}
		got, err := server.Count(t.Context(), "first_db")
		must(t, err)
		if diff := cmp.Diff(map[string]int64{"public.t": 2}, got); diff != "" {
			t.Errorf("what was written since is gone: -want, +got:\n%s", diff)
		}
		unlocked(t, server, "first_db")
		unlocked(t, server, "second_db")
	})

	t.Run("Uncounted", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("what happens to a whole database does not depend on the engine")
		}
		f.t = t
		// Its rows cannot be counted by its owner once it is restored.
		createDatabase(t, s, "guarded")
		s.data(t, "guarded", "exec", "CREATE TABLE t (n int); INSERT INTO t VALUES (1); ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY")
		p := f.beside(s, "guarded")
		p.task.Name = "guarded"
		p.succeed(backup.Backup)
		createDatabase(t, s, "guarded_copy")
		s.data(t, "guarded_copy", "exec", "CREATE ROLE plain LOGIN PASSWORD '"+strings.ReplaceAll(password, "'", "''")+"'; ALTER DATABASE guarded_copy OWNER TO plain; GRANT ALL ON SCHEMA public TO plain; ALTER DATABASE guarded_copy SET row_security = off")
		uri := *s
		uri.uri = func(database string) string { return asUser(t, s.uri(database), "plain") }
		p.from(&uri, "guarded_copy")
		r := p.fail(backup.Restore, backup.SourceDenied, by("first"))
		if !strings.Contains(r.Failure.Message, "database guarded_copy has all of the backup, and is left as it is") {
			t.Errorf("it does not say that the database is whole: %s", r.Failure.Message)
		}
		if out := s.data(t, "guarded_copy", "sums"); !strings.Contains(out, "public.t") {
			t.Errorf("a database that was whole was emptied: %s", out)
		}
		unlocked(t, server, "guarded_copy")
	})

	t.Run("NoTimeout", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("the other engines have another test")
		}
		f.t = t
		createDatabase(t, s, "slow")
		s.data(t, "slow", "exec", "CREATE TABLE t (n int); INSERT INTO t VALUES (1); ALTER DATABASE slow SET statement_timeout = '100ms'")
		c, err := pgx.Connect(t.Context(), s.uri("slow"))
		must(t, err)
		defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
		tx, err := c.Begin(t.Context())
		must(t, err)
		_, err = tx.Exec(t.Context(), "LOCK TABLE t")
		must(t, err)
		// A connection is for one goroutine at a time: it is closed after its transaction has ended.
		freed := make(chan struct{})
		time.AfterFunc(400*time.Millisecond, func() {
			defer close(freed)
			_ = tx.Rollback(context.WithoutCancel(t.Context()))
		})
		defer func() { <-freed }()
		if got, err := server.Count(t.Context(), "slow"); err != nil || got["public.t"] != 1 {
			t.Errorf("a count that takes longer than the server's limit fails: %v, %v", got, err)
		}
	})

	t.Run("NoBackupMeanwhile", func(t *testing.T) {
		f.t = t
		half(t, "meanwhile")
		p := f.beside(s, "meanwhile")
		p.task.Name = "meanwhile"
		p.succeed(backup.Backup)
		list := func() int {
			l, err := p.open().List(t.Context())
			must(t, err)
			return len(l.Items) + len(l.Unfinished)
		}
		began := engine.Lock{Owner: "uid-of-first", Name: "shop/first", Began: true, Backup: "some"}
		log := p.Log
		for name, at := range map[string]string{"before": "", "during": "dumping database"} {
			if at == "" {
				locked(t, server, "meanwhile", began)
			} else {
				p.Log = onLine{log, at, func() { locked(t, server, "meanwhile", began) }}
			}
			r := p.fail(backup.Backup, backup.TargetLocked)
			if !strings.Contains(r.Failure.Message, "database meanwhile may hold a part of a backup, or nothing of what it held before: if Restore shop/first runs") {
				t.Errorf("%s: it does not say why: %s", name, r.Failure.Message)
			}
			if n := list(); n != 1 {
				t.Errorf("%s: the store has %d backups", name, n)
			}
			p.Log = log
			have, err := server.Locked(t.Context(), "meanwhile")
			must(t, err)
			_, err = server.Swap(t.Context(), "meanwhile", have, nil)
			must(t, err)
		}
		// A database that is whole is backed up, and one with a lock of an older release may be.
		for _, l := range []engine.Lock{{Owner: "uid-of-first", Began: true, Backup: "some", Restored: true}, {Owner: "uid-of-first", Began: true}} {
			locked(t, server, "meanwhile", l)
			p.succeed(backup.Backup)
		}
	})

	t.Run("Pinned", func(t *testing.T) {
		if s.engine != backupv1.PostgreSQL {
			t.Skip("what expires does not depend on the engine")
		}
		f.t = t
		half(t, "pinned")
		p := f.beside(s, "pinned")
		p.task.Name = "pinned"
		p.task.Retention, p.task.Keep = "", &backupv1.Keep{Last: 1}
		first := p.succeed(backup.Backup).Backup.ID
		other := f.beside(s, "pinned")
		other.task = p.task
		p.from(s, "pinned_copy")
		log := p.Log
		p.Log = onLine{p.log, "restoring database", func() {
			if r := other.succeed(backup.Backup); r.Expired != 0 {
				t.Errorf("%d backups expired while one is being restored", r.Expired)
			}
		}}
		r := p.succeed(backup.Restore, by("first"), func(task *backup.Task) { task.ID = first })
		p.Log = log
		if r.Backup.ID != first {
			t.Errorf("another backup was restored: %s", r.Backup.ID)
		}
		if r := other.succeed(backup.Backup); r.Expired != 2 {
			t.Errorf("once it has ended, %d backups expired, want 2", r.Expired)
		}
	})

	t.Run("Lost", func(t *testing.T) {
		f.t = t
		createDatabase(t, s, "lost")
		holder := &job{Program: &Program{LockBeat: testBeat, Log: discard}, task: backup.Task{Restore: "shop/first", UID: "uid-of-first"}, server: server, log: discard}
		h, err := holder.lock(t.Context(), "some", []string{"lost"})
		must(t, err)
		must(t, h.begin("some"))
		h.of("lost").cleared, h.of("lost").partial = true, true
		s.data(t, "lost", "load", "--rows=10", "--bulk=1")
		soon(t, "the loss", func() bool {
			have, err := server.Locked(t.Context(), "lost")
			must(t, err)
			ok, err := server.Swap(t.Context(), "lost", have, &engine.Lock{Owner: "uid-of-second", Name: "shop/second", Token: "second", Began: true})
			must(t, err)
			return ok
		})
		<-h.ctx.Done()
		before := s.sums(t, "lost")
		h.wipe(false)
		if err := h.release(); backup.ReasonOf(err) != backup.TargetLocked || !strings.Contains(err.Error(), "taken over by Restore shop/second") {
			t.Errorf("the loss is not reported: %v", err)
		}
		same(t, "lost", before)
		if l, err := server.Locked(t.Context(), "lost"); err != nil || l == nil || l.Token != "second" {
			t.Errorf("the other one's lock is gone: %+v, %v", l, err)
		}
	})

	t.Run("NoPartOfADump", func(t *testing.T) {
		f.t = t
		half(t, "dumped")
		want := s.sums(t, "dumped")
		locked(t, server, "dumped", engine.Lock{Owner: "uid-of-first", Name: "shop/first"})
		p := f.beside(s, "dumped")
		p.task.Name = "dumped"
		p.succeed(backup.Backup)
		p.succeed(backup.Verify)
		p.from(s, "dumped_copy")
		p.succeed(backup.Restore, by("second"))
		same(t, "dumped_copy", want)
		unlocked(t, server, "dumped_copy")
	})

	t.Run("Killed", func(t *testing.T) {
		f.t = t
		p := f.beside(s, "killed")
		p.kill(by("first"), func() bool {
			what, err := server.Holds(t.Context(), "killed")
			return err == nil && what != ""
		})
		p.fail(backup.Restore, backup.TargetNotEmpty, by("second"))
		p.succeed(backup.Restore, by("first"))
		same(t, "killed", want)
		unlocked(t, server, "killed")
	})
}

// onLine does something when a line with a text is logged.
type onLine struct {
	io.Writer

	text string
	do   func()
}

func (l onLine) Write(p []byte) (int, error) {
	if strings.Contains(string(p), l.text) {
		l.do()
	}
	return l.Writer.Write(p)
}

// podVariable holds the Program and the task of a pod that is to be killed, as JSON.
const podVariable = "STOREPLANE_TEST_POD"

// pod holds the fields of a Program and its task.
type pod struct {
	Source  string `json:"source"`
	Store   string `json:"store"`
	Key     string `json:"key"`
	Volume  string `json:"volume"`
	Scratch string `json:"scratch"`
	Report  string `json:"report"`
	Task    string `json:"task"`
}

// kill starts a pod that restores, and kills it once the condition holds, as if its node died.
func (f *fixture) kill(with func(*backup.Task), once func() bool) {
	f.t.Helper()
	task := f.task
	task.Action = backup.Restore
	with(&task)
	content, err := json.Marshal(task)
	must(f.t, err)
	env, err := json.Marshal(pod{Source: f.Source, Store: f.Store, Key: f.Key, Volume: f.Volume, Scratch: f.Scratch, Report: f.Report, Task: string(content)})
	must(f.t, err)
	self, err := os.Executable()
	must(f.t, err)
	// The restoring tool reads from a pipe, which is closed when this process is killed.
	cmd := exec.CommandContext(f.t.Context(), self, "-test.run=^TestPod$")
	cmd.Env = append(os.Environ(), podVariable+"="+string(env))
	must(f.t, cmd.Start())
	soon(f.t, "half a restore", once)
	must(f.t, cmd.Process.Kill())
	_ = cmd.Wait()
}

// TestPod runs the program of a pod in a process of its own. It is no test.
func TestPod(t *testing.T) {
	env := os.Getenv(podVariable)
	if env == "" {
		t.Skip("it is run by tests that kill it")
	}
	p := pod{}
	must(t, json.Unmarshal([]byte(env), &p))
	program := Program{
		Source: p.Source, Store: p.Store, Key: p.Key, Volume: p.Volume, Scratch: p.Scratch, Report: p.Report,
		Log: discard, Now: time.Now, LockBeat: testBeat,
	}
	program.Main(context.Background(), p.Task)
}
