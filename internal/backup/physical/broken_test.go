package physical

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// segments returns the WAL segments in the archive, oldest first.
func (c *cluster) segments() []string {
	c.t.Helper()
	found, err := filepath.Glob(filepath.Join(c.path("repo"), "archive", c.stanza, "*", "*", "*-*"))
	if err != nil || len(found) == 0 {
		c.t.Fatalf("there is no WAL in the archive: %v", err)
	}
	return found
}

// refuse makes a file or folder unreadable, and returns a function that undoes it.
func refuse(t *testing.T, path string) (allow func()) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	allow = func() { _ = os.Chmod(path, info.Mode()) }
	t.Cleanup(allow)
	return allow
}

// watch is a log that calls a function once a text is written to it.
type watch struct {
	testLog

	text string
	then func()
	once sync.Once
}

func (w *watch) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.once.Do(w.then)
	}
	return w.testLog.Write(p)
}

// begun is what PostgreSQL logs before it reads the archive.
const begun = "database system was interrupted"

// TestRefused: a store that refuses access during a recovery is an error, although PostgreSQL takes
// that for the end of the archive and starts with what it has until then.
func TestRefused(t *testing.T) { //nolint:tparallel // the subtests share a server
	t.Parallel()
	c := filled(t, 4)
	all := c.segments()
	for name, path := range map[string]string{"Segment": all[len(all)-2], "Folder": filepath.Dir(all[0])} {
		t.Run(name, func(t *testing.T) {
			allow := func() {}
			log := &watch{testLog: testLog{t}, text: begun, then: func() { allow = refuse(t, path) }}
			rows, err := c.recoveredBy(recovery.Recovery{Log: log, RetryFor: 3 * time.Second})
			failure := &pgbackrest.Error{}
			if !errors.As(err, &failure) || pgbackrest.ReasonOf(err) != backup.StoreDenied {
				t.Errorf("recovered to the end while the store refuses: got %v, %v, want %s", rows, err, backup.StoreDenied)
			}
			t.Log(err)
			allow()

			log = &watch{testLog: testLog{t}, text: begun, then: func() { allow = refuse(t, path) }}
			again := &watch{testLog: testLog{t}, text: "Permission denied", then: func() { allow() }}
			rows, err = c.recoveredBy(recovery.Recovery{Log: io.MultiWriter(log, again)})
			if err != nil || !cmp.Equal([]int64{1, 2, 3, 4}, rows) {
				t.Errorf("recovered to the end although the store refuses for a moment: got %v, %v", rows, err)
			}
		})
	}
}

// TestHole: a missing segment in the middle of an archive is an error, although PostgreSQL takes
// that for the end of the archive too.
func TestHole(t *testing.T) {
	t.Parallel()
	c := filled(t, 4)
	end := c.now()
	c.exec("INSERT INTO t VALUES (5)")
	c.archive()
	all := c.segments()
	gone := all[len(all)-3]
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	segment, _, _ := strings.Cut(filepath.Base(gone), "-")
	for name, target := range map[string]time.Time{"End": {}, "Time": end} {
		rows, err := c.recovered(target)
		if !errors.Is(err, recovery.ErrHole) || !strings.Contains(err.Error(), segment) {
			t.Errorf("%s: recovered beyond a hole: got %v, %v, want %v at %s", name, rows, err, recovery.ErrHole, segment)
		}
		t.Log(err)
	}
}

// TestTimelines: a database is restored completely after a failover, although the names of its
// segments begin with another timeline since.
func TestTimelines(t *testing.T) {
	t.Parallel()
	c := filled(t, 2)
	for _, archived := range []bool{false, true} {
		c.run("pg_ctl", "-D", c.path("data"), "-w", "-m", "fast", "stop")
		if err := os.WriteFile(c.path("data/standby.signal"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c.start()
		c.run("pg_ctl", "-D", c.path("data"), "-w", "promote")
		want := []int64{1, 2}
		if archived {
			c.exec("INSERT INTO t VALUES (3)")
			c.archive()
			want = append(want, 3)
		}
		c.awaitArchived()
		if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal(want, rows) {
			t.Errorf("recovered to the end after a failover, archived %t: got %v, %v, want %v", archived, rows, err, want)
		}
	}
}

// awaitArchived waits until no segment waits to be archived.
func (c *cluster) awaitArchived() {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), "postgres")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for waiting := true; waiting; {
		if err := conn.QueryRow(c.t.Context(), "SELECT count(*) > 0 FROM pg_ls_archive_statusdir(), pg_sleep(0.1) WHERE name LIKE '%.ready'").Scan(&waiting); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestVerifyRefused: a store that refuses access during a verification shows nothing about the
// backup.
func TestVerifyRefused(t *testing.T) { //nolint:tparallel // the subtests share a server
	t.Parallel()
	c := filled(t, 2)
	sets, err := c.tool.Sets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all, info := c.segments(), c.path("repo/backup/"+c.stanza)
	set := filepath.Join(info, sets[0].Label)
	for name, path := range map[string]string{
		"Segment": all[len(all)-1], "Backup": filepath.Join(set, "bundle"), "Info": filepath.Join(info, "backup.info"), "Folder": set, "Archive": filepath.Dir(all[0]),
	} {
		t.Run(name, func(t *testing.T) {
			refuse(t, path)
			if _, err := os.Stat(path + ".copy"); err == nil {
				refuse(t, path+".copy")
			}
			if err := c.tool.Verify(t.Context(), c.stanza); reasonOf(err) != backup.StoreDenied {
				t.Errorf("verify the files: got %s, %v, want %s", reasonOf(err), err, backup.StoreDenied)
			} else {
				t.Log(err)
			}
		})
	}

	j := c.verifier(&watch{testLog: testLog{t}, text: begun, then: func() { refuse(t, filepath.Dir(all[0])) }})
	j.retryFor = 3 * time.Second
	if err := j.tryOut(t.Context(), sets[0]); reasonOf(err) != backup.StoreDenied {
		t.Errorf("try the backup out: got %s, %v, want %s", reasonOf(err), err, backup.StoreDenied)
	}
}

// TestStopped: after a server that was killed, the data has to be recovered once more, so the
// restore has not succeeded.
func TestStopped(t *testing.T) {
	t.Parallel()
	c := filled(t, 2)
	r := recovery.Recovery{Tool: c.tool, Set: c.sets()[0], DataDir: c.path("restored"), WorkDir: c.path("w"), Log: testLog{t}}
	err := r.Run(t.Context(), func(context.Context, recovery.Connect) error {
		file, err := os.ReadFile(c.path("restored/postmaster.pid"))
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(string(file), "\n")
		pid, err := strconv.Atoi(first)
		if err != nil {
			return err
		}
		return syscall.Kill(pid, syscall.SIGKILL)
	})
	if err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("recovery by a server that was killed: got %v", err)
	}
}

// TestTablespace: only a user in a server's pod can create a tablespace, which lies outside of the
// data folder. It is restored to its old place, and never over existing files, which may belong to
// another database.
func TestTablespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := os.Mkdir(c.path("ts"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.exec("CREATE TABLESPACE ts LOCATION '" + c.path("ts") + "'")
	c.exec("CREATE TABLE t TABLESPACE ts AS SELECT 1::bigint AS id")
	c.backUp("full")
	c.archive()
	if rows, err := c.recovered(time.Time{}); err == nil || !strings.Contains(err.Error(), c.path("ts")) {
		t.Errorf("recovered over a tablespace: got %v, %v", rows, err)
	}
	if n := scalar[int64](c, "SELECT count(*) FROM t"); n != 1 {
		t.Errorf("want the row in the tablespace that was there, got %d rows", n)
	}
	c.run("pg_ctl", "-D", c.path("data"), "-w", "-m", "fast", "stop")
	t.Cleanup(c.start) // the cluster's own cleanup stops it
	if err := os.Rename(c.path("ts"), c.path("moved")); err != nil {
		t.Fatal(err)
	}
	if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{1}, rows) {
		t.Errorf("recovered where no tablespace is: got %v, %v", rows, err)
	}
}
