package physical

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgtest"
)

// smallCluster returns a cluster with its repository on a small volume.
func smallCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("pgBackRest tries to write into a full volume for half a minute")
	}
	small := os.Getenv(pgtest.SmallVariable)
	if small == "" {
		t.Skip("a volume cannot be mounted here: only root can mount one")
	}
	left, err := os.ReadDir(small)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if err := os.RemoveAll(filepath.Join(small, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return newClusterAt(t, small)
}

// scalar returns the single value of a query.
func scalar[T any](c *cluster, sql string) T {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), "postgres")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var out T
	if err := conn.QueryRow(c.t.Context(), sql).Scan(&out); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// noise adds megabytes of incompressible rows to a table.
func (c *cluster) noise(table string, megabytes int) {
	c.t.Helper()
	c.exec(fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %[1]s (b bytea);
		ALTER TABLE %[1]s ALTER b SET STORAGE EXTERNAL;
		INSERT INTO %[1]s SELECT (SELECT decode(string_agg(replace(gen_random_uuid()::text, '-', ''), ''), 'hex') FROM generate_series(1, 64) WHERE i > 0) FROM generate_series(1, %[2]d * 1024) i`, table, megabytes))
}

// wait waits until the condition holds.
func (c *cluster) wait(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("%s: not within two minutes", what)
		}
	}
}

func (c *cluster) free() uint64 {
	c.t.Helper()
	used, size, err := volume.Usage(c.path("repo"))
	if err != nil {
		c.t.Fatal(err)
	}
	return size - used
}

func (c *cluster) backupTask() backup.Task {
	t := c.task(backup.Backup)
	t.Full, t.Retention = true, "30d"
	return t
}

// TestNotSetUp: a backup that begins before the primary has set up the repository fails with a
// reason that is retried.
func TestNotSetUp(t *testing.T) {
	c := newCluster(t)
	if err := os.RemoveAll(c.path("repo")); err != nil {
		t.Fatal(err)
	}
	for _, there := range []bool{false, true} {
		if there {
			if err := os.Mkdir(c.path("repo"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		r := c.do(c.backupTask())
		if r.Failure == nil || r.Failure.Reason != backup.SourceUnreachable || !strings.Contains(r.Failure.Message, "the primary has not set the repository up yet") {
			t.Errorf("folder of the repository there: %t: want %s, and why, got %+v", there, backup.SourceUnreachable, r.Failure)
		}
	}
}

// TestFullRepositoryHeals: backups and WAL have filled a volume, so archiving and backups fail. The
// next run first removes the oldest backup. Then the backup succeeds, and so does archiving.
func TestFullRepositoryHeals(t *testing.T) {
	c := smallCluster(t)
	c.noise("t", 6)
	c.exec("CREATE TABLE ids (id bigint); INSERT INTO ids VALUES (1)")
	if r := c.do(c.backupTask()); r.Failure != nil {
		t.Fatalf("first backup: %+v", r.Failure)
	}
	first := c.sets()[0]
	// More expires with the first backup than the next one needs.
	c.noise("w", 12)
	c.exec("DROP TABLE w")
	c.archive()
	if r := c.do(c.backupTask()); r.Failure != nil {
		t.Fatalf("second backup: %+v", r.Failure)
	}
	c.fill()
	r := c.do(c.backupTask())
	if r.Failure != nil {
		t.Fatalf("backup into a full repository: %+v", r.Failure)
	}
	sets := c.sets()
	if r.Expired == 0 || sets[0].Label == first.Label || len(sets) != 2 {
		t.Errorf("want the first backup expired and two others, got %d expired, and %v", r.Expired, sets)
	}
	if r.Catalog.Oldest == nil || !r.Catalog.Oldest.Equal(sets[0].First()) {
		t.Errorf("want %s to be the first time that can be restored to, got %v", sets[0].First(), r.Catalog.Oldest)
	}
	c.exec("INSERT INTO ids VALUES (2)")
	c.archive()
	if n := scalar[int64](c, "SELECT count(*) FROM ids"); n != 2 {
		t.Errorf("want 2 rows, got %d", n)
	}
	if r := c.do(c.task(backup.Verify)); r.Failure != nil {
		t.Errorf("verify what is left: %+v", r.Failure)
	}
}

// fill fills the volume with WAL until archiving fails, and then to its last byte.
func (c *cluster) fill() {
	c.t.Helper()
	c.exec("SELECT pg_stat_reset_shared('archiver')")
	c.wait("the volume is full of WAL", func() bool {
		if scalar[int64](c, "SELECT failed_count FROM pg_stat_archiver") > 0 {
			return true
		}
		c.noise("w", 4)
		c.exec("TRUNCATE w")
		return false
	})
	f, err := os.Create(c.path("repo/other"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	_, err = io.Copy(f, zeros{})
	if err == nil || !strings.Contains(err.Error(), "no space left") || c.free() > 0 {
		c.t.Fatalf("the volume is not full: %v, %d bytes left", err, c.free())
	}
}

// zeros is an endless stream of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (c *cluster) sets() []pgbackrest.Set {
	c.t.Helper()
	sets, err := c.tool.Sets(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return sets
}

// TestLastGoodBackupStays: without room for another, the only backup stays. The failure names what
// does not fit, and no partial backup is left.
func TestLastGoodBackupStays(t *testing.T) {
	c := smallCluster(t)
	c.noise("t", 20)
	if r := c.do(c.backupTask()); r.Failure != nil {
		t.Fatalf("first backup: %+v", r.Failure)
	}
	before := c.sets()
	// A database that had the name before has left this.
	for _, of := range []string{"archive", "backup"} {
		dir := filepath.Join(c.path("repo"), of, "7000000000000000099")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 40<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := c.do(c.backupTask())
	if r.Failure == nil || r.Failure.Reason != backup.StoreFull || !strings.Contains(r.Failure.Message, "volume claim claim") || !strings.Contains(r.Failure.Message, "backup.storageSize") ||
		!strings.Contains(r.Failure.Message, "Backups of other databases take 80Ki of it, of system identifier 7000000000000000099: once nothing of them is needed") {
		t.Errorf("backup without room: want StoreFull, got %+v", r.Failure)
	} else {
		t.Log(r.Failure.Message)
	}
	if diff := cmp.Diff(before, c.sets()); diff != "" {
		t.Errorf("what there was: -want, +got:\n%s", diff)
	}

	// A backup whose size cannot be estimated fills the volume.
	c.exec("CREATE TABLE ids (id bigint)")
	c.noise("u", 14)
	incremental := c.backupTask()
	incremental.FullEvery = 7
	r = c.do(incremental)
	if r.Failure == nil || r.Failure.Reason != backup.StoreFull {
		t.Errorf("backup that is larger than the volume: want StoreFull, got %+v", r.Failure)
	} else {
		t.Log(r.Failure.Message)
	}
	if diff := cmp.Diff(before, c.sets()); diff != "" {
		t.Errorf("what there was: -want, +got:\n%s", diff)
	}
	if dirs, _ := filepath.Glob(c.path("repo/backup/*/2*")); len(dirs) != 1 {
		t.Errorf("the backup that failed is left: %v", dirs)
	}
}

// TestCatalogOfFailure: backups that expired to make room are not in the report of the backup that
// failed afterwards.
func TestCatalogOfFailure(t *testing.T) {
	c := smallCluster(t)
	c.noise("t", 2)
	for range 2 {
		if r := c.do(c.backupTask()); r.Failure != nil {
			t.Fatalf("backup: %+v", r.Failure)
		}
	}
	before := c.sets()
	// The first attempt fills the volume, and the second fails for another reason.
	program, err := exec.LookPath(pgbackrest.Program)
	if err != nil {
		t.Fatal(err)
	}
	bin, filled := t.TempDir(), c.path("repo/other")
	script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *' backup '*) ;; *) exec '%[1]s' \"$@\";; esac\n[ -e '%[2]s' ] && { rm '%[2]s'; echo 'ERROR: [056]: no server' >&2; exit 56; }\ncat /dev/zero >'%[2]s' 2>/dev/null\necho 'ERROR: [062]: No space left on device' >&2; exit 62\n", program, filled)
	if err := os.WriteFile(filepath.Join(bin, pgbackrest.Program), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	r := c.do(c.backupTask())
	after := c.sets()
	if r.Failure == nil || r.Failure.Reason != backup.SourceUnreachable || len(after) != 1 || after[0].Label != before[1].Label {
		t.Fatalf("want the first backup expired, and the attempt after that failed: got %+v, %v", r.Failure, after)
	}
	if r.Catalog.Count != 1 || r.Catalog.Backups[0].ID != after[0].Label || r.Expired != 1 {
		t.Errorf("the report of the failure: want %s alone, and one expired: got %+v, %d", after[0].Label, r.Catalog, r.Expired)
	}
}
