package physical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
	"github.com/storeplane/storeplane/internal/pgtest"
)

func TestMain(m *testing.M) {
	recovery.Main()
	os.Exit(pgtest.Main(m))
}

// cluster is a PostgreSQL server whose WAL is archived by pgBackRest.
type cluster struct {
	t      *testing.T
	dir    string
	stanza string
	tool   pgbackrest.Tool
	local  []string
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterAt(t, "")
}

// newClusterAt creates a cluster with its repository in the given folder, or in its own if that is
// empty.
func newClusterAt(t *testing.T, repository string) *cluster {
	t.Helper()
	pgtest.Need(t, "pgbackrest", "initdb", "pg_ctl")
	// The path of a socket may have at most 107 bytes.
	dir, err := os.MkdirTemp("", "p") //nolint:usetesting // t.TempDir returns a longer path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	c := &cluster{t: t, dir: dir}
	if repository != "" {
		if err := os.Symlink(repository, c.path("repo")); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"s", "repo", "tmp", "store"} {
		if d == "repo" && repository != "" {
			continue
		}
		if err := os.Mkdir(c.path(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	repo := pgbackrest.Repository{Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "claim"}, Namespace: "shop", Name: "orders"}
	config, err := repo.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.path("conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c.tool = pgbackrest.Tool{ConfigFile: c.path("conf"), Log: io.Discard, Env: []string{
		"PGBACKREST_REPO1_PATH=" + c.path("repo"), "PGBACKREST_LOCK_PATH=" + c.path("lock"),
	}}
	c.run("initdb", "-D", c.path("data"), "-U", "postgres", "--data-checksums", "-A", "trust")
	if c.stanza, err = pgbackrest.Stanza(c.path("data")); err != nil {
		t.Fatal(err)
	}
	c.start()
	t.Cleanup(func() { c.run("pg_ctl", "-D", c.path("data"), "-w", "-m", "immediate", "stop") })
	c.local = pgbackrest.Options([]pgbackrest.Server{{DataDir: c.path("data"), SocketDir: c.path("s")}})
	c.must(c.tool.Run(t.Context(), c.stanza, "stanza-create", c.local...))
	return c
}

func (c *cluster) run(program string, args ...string) {
	c.t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil { //nolint:noctx // PostgreSQL's own programs
		c.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// start starts PostgreSQL.
func (c *cluster) start() {
	c.t.Helper()
	c.startWith("")
}

// startWith starts PostgreSQL with more options on its command line.
func (c *cluster) startWith(options string) {
	c.t.Helper()
	archive := fmt.Sprintf("env %s pgbackrest --config=%s --stanza=%s --pg1-path=%s archive-push %%p", strings.Join(c.tool.Env, " "), c.path("conf"), c.stanza, c.path("data"))
	c.run("pg_ctl", "-D", c.path("data"), "-w", "-l", c.path("log"), "-o", fmt.Sprintf(
		"-c listen_addresses= -c unix_socket_directories=%s -c archive_mode=on -c archive_command='%s' %s", c.path("s"), archive, options), "start")
}

func (c *cluster) must(out []byte, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
}

func (c *cluster) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "postgres:///"+url.PathEscape(database)+"?user=postgres&host="+c.path("s"))
}

func (c *cluster) exec(sql string) {
	c.t.Helper()
	c.execIn("postgres", sql)
}

func (c *cluster) execIn(database, sql string) {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), database)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(c.t.Context(), sql); err != nil {
		c.t.Fatal(err)
	}
}

// now returns the time of the server's clock, after everything that was committed before.
func (c *cluster) now() time.Time {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), "postgres")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var at time.Time
	if err := conn.QueryRow(c.t.Context(), "SELECT clock_timestamp() FROM pg_sleep(0.01)").Scan(&at); err != nil {
		c.t.Fatal(err)
	}
	return at
}

func (c *cluster) backUp(kind string) {
	c.t.Helper()
	c.must(c.tool.Run(c.t.Context(), c.stanza, "backup", append(slices.Clone(c.local), "--type="+kind, "--start-fast", "--repo1-retention-full=2")...))
}

// archive archives all WAL that was written.
func (c *cluster) archive() {
	c.t.Helper()
	c.exec("SELECT pg_switch_wal()")
	c.must(c.tool.Run(c.t.Context(), c.stanza, "check", c.local...))
}

func (c *cluster) task(a backup.Action) backup.Task {
	return backup.Task{
		Action: a, Method: backupv1.Physical, Namespace: "shop", Name: "orders", Stanza: c.stanza,
		Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "claim"},
	}
}

func (c *cluster) do(task backup.Task) backup.Report { return c.doAt(task, time.Now) }

func (c *cluster) doAt(task backup.Task, now func() time.Time) backup.Report {
	p := c.places()
	if task.Action == backup.Verify {
		defer c.serve(&p, testLog{c.t})()
	}
	return run(c.t.Context(), task, p, testLog{c.t}, now)
}

func (c *cluster) places() places {
	return places{store: c.path("store"), key: c.path("key"), tmp: c.path("tmp"), path: c.path("repo"),
		servers: []pgbackrest.Server{{DataDir: c.path("data"), SocketDir: c.path("s")}}}
}

// serve runs a throw-away server in folders of its own, as the other container of a pod does.
func (c *cluster) serve(p *places, log io.Writer) (stop func()) {
	c.t.Helper()
	for _, dir := range []*string{&p.Scratch, &p.Socket, &p.Archive} {
		var err error
		if *dir, err = os.MkdirTemp(c.dir, "v"); err != nil {
			c.t.Fatal(err)
		}
	}
	stage, err := engine.NewStage(p.Socket)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := Serve(ctx, p.Shared, stage, log); err != nil {
			_ = stage.Ended(err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// verifier returns a job that verifies. The server beside it logs to log.
func (c *cluster) verifier(log io.Writer) *job {
	c.t.Helper()
	j := c.job(c.task(backup.Verify))
	stop := c.serve(&j.places, log)
	c.t.Cleanup(stop)
	return j
}

// job returns a job that is prepared for a task.
func (c *cluster) job(task backup.Task) *job {
	c.t.Helper()
	j := &job{task: task, places: c.places(), log: testLog{c.t}, now: time.Now, report: &backup.Report{}}
	if err := j.prepare(); err != nil {
		c.t.Fatal(err)
	}
	return j
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// recovered returns the rows of table t after a recovery to a time.
func (c *cluster) recovered(target time.Time) ([]int64, error) {
	c.t.Helper()
	return c.recoveredBy(recovery.Recovery{Target: target, Log: testLog{c.t}})
}

// recoveredBy returns the rows of table t after a recovery whose set and folders it fills in.
func (c *cluster) recoveredBy(r recovery.Recovery) ([]int64, error) {
	c.t.Helper()
	sets, err := c.tool.Sets(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	if r.Set, err = pgbackrest.Choose(sets, c.stanza, r.Target, time.Now()); err != nil {
		return nil, err
	}
	r.Tool, r.DataDir, r.WorkDir = c.tool, c.path("restored"), c.path("w")
	var rows []int64
	err = r.Run(c.t.Context(), func(ctx context.Context, connect recovery.Connect) error {
		conn, err := connect(ctx, "postgres")
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(ctx) }()
		got, err := conn.Query(ctx, "SELECT id FROM t ORDER BY id")
		if err != nil {
			return err
		}
		rows, err = pgx.CollectRows(got, pgx.RowTo[int64])
		return err
	})
	return rows, err
}

func TestPointInTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.exec("CREATE TABLE t (id bigint)")
	c.exec("INSERT INTO t VALUES (1)")
	early := c.now()
	time.Sleep(1100 * time.Millisecond) // pgBackRest counts in seconds
	c.backUp("full")
	c.exec("INSERT INTO t VALUES (2)")
	time.Sleep(1100 * time.Millisecond)
	between := c.now()
	c.exec("INSERT INTO t VALUES (3)")
	c.archive()

	if rows, err := c.recovered(between); err != nil || !cmp.Equal([]int64{1, 2}, rows) {
		t.Errorf("recovered to between the second row and the third: got %v, %v", rows, err)
	}
	auto, err := os.ReadFile(c.path("restored/postgresql.auto.conf"))
	if err != nil || strings.Contains(string(auto), "\nrecovery_target") || strings.Contains(string(auto), "\nrestore_command") {
		t.Errorf("what the recovery needed is left in postgresql.auto.conf: %v\n%s", err, auto)
	}
	if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{1, 2, 3}, rows) {
		t.Errorf("recovered to the end: got %v, %v", rows, err)
	}
	if _, err := c.recovered(early); !errors.Is(err, pgbackrest.ErrNone) {
		t.Errorf("recovered to before the first backup: got %v, want %v", err, pgbackrest.ErrNone)
	}
	if _, err := c.recovered(c.now()); !errors.Is(err, recovery.ErrEarly) {
		t.Errorf("recovered to after the last change in the archive: got %v, want %v", err, recovery.ErrEarly)
	} else {
		t.Log(err)
	}
	if _, err := c.recovered(time.Now().Add(time.Hour)); !errors.Is(err, pgbackrest.ErrNone) {
		t.Errorf("recovered to the future: got %v, want %v", err, pgbackrest.ErrNone)
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	c := newCluster(t)

	if r := c.do(c.task(backup.Verify)); r.Failure == nil || r.Failure.Reason != backup.BackupMissing {
		t.Errorf("verify without a backup: got %+v", r.Failure)
	}
	if r := c.do(c.task(backup.Check)); r.Failure != nil || r.Catalog == nil || r.Catalog.Count != 0 {
		t.Errorf("check without a backup: got %+v, %+v", r.Failure, r.Catalog)
	}

	c.exec("CREATE TABLE t (id bigint PRIMARY KEY)")
	c.exec("INSERT INTO t SELECT generate_series(1, 20000)")
	c.backUp("full")
	c.exec("INSERT INTO t VALUES (0)")
	c.backUp("incr")
	c.archive()

	task := c.task(backup.Verify)
	task.Query = "SELECT count(*) > 20000 FROM t"
	r := c.do(task)
	if r.Failure != nil {
		t.Fatalf("verify: %+v", r.Failure)
	}
	if r.Rows != 20001 || r.Backup == nil || r.Backup.Verified == nil || r.Catalog.Count != 2 || r.Catalog.Verified == nil || r.Catalog.Verified.ID != r.Catalog.Backups[0].ID {
		t.Errorf("verify: got %+v, %+v", r, r.Catalog)
	}

	task.Query = "SELECT id FROM t"
	if r := c.do(task); r.Failure == nil || r.Failure.Reason != backup.ContentDiffers {
		t.Errorf("verify with a query whose first column is 0 in one row: got %+v", r.Failure)
	}

	// The query belongs to the team, and the repository's credentials to the platform.
	for _, q := range []string{"SELECT pg_read_file('PG_VERSION')", "SELECT set_config('session_authorization', 'postgres', false)", "SELECT lo_import('/etc/hostname')"} {
		task.Query = q
		if r := c.do(task); r.Failure == nil || r.Failure.Reason != backup.ContentDiffers || !strings.Contains(r.Failure.Message, "permission denied") {
			t.Errorf("verify with %s: want it denied, got %+v", q, r.Failure)
		}
	}

	c.corrupt("backup", 4096)
	r = c.do(c.task(backup.Verify))
	if r.Failure == nil || r.Failure.Reason != backup.BackupCorrupt {
		t.Errorf("verify of a damaged backup: got %+v", r.Failure)
	} else {
		t.Log(r.Failure.Message)
	}

	if r := c.do(c.task(backup.Restore)); r.Failure == nil || r.Failure.Reason != backup.InvalidTask {
		t.Errorf("restore: got %+v", r.Failure)
	}
	if r := c.do(c.task(backup.Delete)); r.Failure != nil || r.Catalog.Count != 0 {
		t.Errorf("delete: got %+v, %+v", r.Failure, r.Catalog)
	}
}

// TestVerifyQuery: the query can read all of a database that only its owner may connect to, like
// those that the platform creates, and can do nothing else.
func TestVerifyQuery(t *testing.T) { //nolint:tparallel // the subtests share a server
	t.Parallel()
	const database = `Shop "1"`
	c := newCluster(t)
	c.exec("CREATE ROLE owner")
	c.exec(`CREATE DATABASE "Shop ""1""" OWNER owner`)
	c.exec(`REVOKE ALL ON DATABASE "Shop ""1""" FROM PUBLIC`)
	conn, err := c.connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), `SET ROLE owner; CREATE SCHEMA closed; CREATE TABLE closed.t (id bigint); INSERT INTO closed.t VALUES (1), (2);
		CREATE TABLE closed.secured (id bigint); INSERT INTO closed.secured VALUES (1), (2);
		ALTER TABLE closed.secured ENABLE ROW LEVEL SECURITY; ALTER TABLE closed.secured FORCE ROW LEVEL SECURITY`)
	if err := errors.Join(err, conn.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
	c.backUp("full")
	c.archive()

	task := c.task(backup.Verify)
	task.QueryDatabase, task.Query = database, "SELECT count(*) = 4 FROM (TABLE closed.t UNION ALL TABLE closed.secured) all_of_it"
	if r := c.do(task); r.Failure != nil || !cmp.Equal([]string{database}, r.Databases) {
		t.Errorf("verify of a good backup: got %+v, %+v", r.Failure, r)
	}

	// The privileges of the role are the same on every server.
	cases := map[string]struct{ reason, query, want string }{
		"Closed":      {reason: "The role may connect where PUBLIC may not.", query: "SELECT count(*) = 2 FROM closed.t"},
		"RowSecurity": {reason: "No policy hides rows: the table would look empty.", query: "SELECT count(*) = 2 FROM closed.secured"},
		"Write":       {reason: "It only reads.", query: "INSERT INTO closed.t VALUES (3) RETURNING true", want: "permission denied for table t"},
		"Program":     {reason: "It is no superuser.", query: "SELECT pg_read_file('PG_VERSION')", want: "permission denied for function pg_read_file"},
		"Role":        {reason: "Nor can it become one.", query: "SELECT set_config('role', 'postgres', false)", want: "permission denied to set role"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			task.Query = tc.query
			err := c.job(task).query(t.Context(), c.connect)
			if tc.want == "" && err != nil {
				t.Errorf("%s\n%s: got %v", tc.reason, tc.query, err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\n%s: want an error with %q, got %v", tc.reason, tc.query, tc.want, err)
			}
		})
	}
}

// corrupt changes one byte of a file of at least the given size.
func (c *cluster) corrupt(dir string, least int64) {
	c.t.Helper()
	done := false
	err := filepath.Walk(filepath.Join(c.path("repo"), dir), func(path string, info os.FileInfo, err error) error {
		if err != nil || done || info.IsDir() || info.Size() < least || strings.Contains(path, "manifest") || strings.Contains(path, ".info") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[len(b)/2] ^= 0xff
		done = true
		return os.WriteFile(path, b, 0o600)
	})
	if err != nil || !done {
		c.t.Fatalf("cannot damage a file: %v", err)
	}
}

// TestVerifyGap: an archive with a missing segment restores nothing beyond that segment, though
// each existing file is good. A newer backup needs no WAL from before it.
func TestVerifyGap(t *testing.T) {
	c := newCluster(t)
	c.exec("CREATE TABLE t (id bigint)")
	c.backUp("full")
	for i := range 3 {
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", i))
		c.archive()
	}
	if r := c.do(c.task(backup.Verify)); r.Failure != nil {
		t.Fatalf("verify of a whole archive: got %+v", r.Failure)
	}
	// Several processes archive at once: a segment that comes a moment later is not missing.
	late := c.segment()
	if err := os.Rename(late, late+".late"); err != nil {
		t.Fatal(err)
	}
	soon := c.verifier(testLog{t})
	soon.lookAgain = 2 * time.Second
	back := time.AfterFunc(soon.lookAgain/2, func() { _ = os.Rename(late+".late", late) })
	defer back.Stop()
	if err := soon.whole(t.Context(), c.sets(), c.sets()[0]); err != nil {
		t.Errorf("verify of an archive in which a segment comes late: %v", err)
	}

	gone := c.lose()
	r := c.do(c.task(backup.Verify))
	if r.Failure == nil || r.Failure.Reason != backup.ArchiveGap || !strings.Contains(r.Failure.Message, gone) {
		t.Errorf("verify of an archive without %s: got %+v", gone, r.Failure)
	} else {
		t.Log(r.Failure.Message)
	}
	c.backUp("full")
	c.archive()
	j := c.verifier(testLog{t})
	said := &strings.Builder{}
	j.log = said
	if err := j.verify(t.Context()); err != nil || !strings.Contains(said.String(), "WAL "+gone+" is missing") {
		t.Errorf("verify of a backup that is newer than the gap: got %v, and of %s:\n%s", err, gone, said)
	}
}

// segment returns the file of the last segment but one in the archive.
func (c *cluster) segment() string {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.path("repo"), "archive", c.stanza, "*-1", "*", strings.Repeat("[0-9A-F]", 24)+"-*"))
	if err != nil || len(found) < 3 {
		c.t.Fatalf("cannot find segments: %v, %v", found, err)
	}
	slices.Sort(found)
	return found[len(found)-2]
}

// lose removes that segment, and returns its name.
func (c *cluster) lose() string {
	c.t.Helper()
	file := c.segment()
	if err := os.Remove(file); err != nil {
		c.t.Fatal(err)
	}
	return filepath.Base(file)[:24]
}
