package physical

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// TestBlocks: if pgBackRest supports it, an incremental backup of a table with few changes is
// small, and the table is restored from blocks of both backups.
func TestBlocks(t *testing.T) {
	c := newCluster(t)
	version, err := pgbackrest.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !pgbackrest.HasBlocks(version) {
		t.Skipf("incremental backups of blocks need pgBackRest 2.55, and this machine has %q", version)
	}
	c.noise("noise", 24)
	c.exec("CREATE TABLE t AS SELECT i::bigint AS id FROM generate_series(1, 3) i")
	task := c.backupTask()
	task.FullEvery = 7
	if r := c.do(task); r.Failure != nil {
		t.Fatalf("full backup: %+v", r.Failure)
	}
	c.exec("DELETE FROM noise WHERE ctid = '(700,1)'")
	c.exec("INSERT INTO t VALUES (4)")
	if r := c.do(task); r.Failure != nil {
		t.Fatalf("incremental backup: %+v", r.Failure)
	}
	c.archive()
	sets := c.sets()
	if len(sets) != 2 || sets[1].IsFull() || sets[1].Size > sets[0].Size/10 {
		t.Errorf("want an incremental backup of little, got %+v", sets)
	}
	if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{1, 2, 3, 4}, rows) {
		t.Errorf("recovered: got %v, %v", rows, err)
	}
	if r := c.do(c.task(backup.Verify)); r.Failure != nil || r.Rows != 24*1024-1+4 {
		t.Errorf("verify: want %d rows, got %d, %+v", 24*1024-1+4, r.Rows, r.Failure)
	}
}

// TestChain: one schedule makes full backups and incremental ones that depend on them. Each can be
// restored and verified. They expire together, and the first time that can be restored is then in
// the next full backup.
func TestChain(t *testing.T) {
	c := newCluster(t)
	c.exec("CREATE TABLE t (id bigint)")
	task := c.backupTask()
	task.FullEvery = 7
	at := func(days int) func() time.Time {
		return func() time.Time { return time.Now().AddDate(0, 0, days) }
	}
	var targets []time.Time
	for row, days := range []int{0, 1, 2, 7} {
		c.exec("INSERT INTO t VALUES (" + string(rune('0'+row)) + ")")
		if r := c.doAt(task, at(days)); r.Failure != nil {
			t.Fatalf("backup on day %d: %+v", days, r.Failure)
		}
		time.Sleep(1100 * time.Millisecond) // pgBackRest counts in seconds
		targets = append(targets, c.now())
		time.Sleep(10 * time.Millisecond)
	}
	c.exec("INSERT INTO t VALUES (9)")
	c.archive()

	sets := c.sets()
	var full []bool
	for _, s := range sets {
		full = append(full, s.IsFull())
	}
	if diff := cmp.Diff([]bool{true, false, false, true}, full); diff != "" {
		t.Fatalf("which backups are full: -want, +got:\n%s", diff)
	}
	if sets[2].Chain() != sets[0].Label {
		t.Errorf("%s should depend on %s", sets[2].Label, sets[0].Label)
	}
	for _, i := range []int{0, 2} {
		target, want := targets[i], []int64{}
		for row := range i + 1 {
			want = append(want, int64(row))
		}
		if rows, err := c.recovered(target); err != nil || !cmp.Equal(want, rows) {
			t.Errorf("recovered to after backup %s: want %v, got %v, %v", sets[i].Label, want, rows, err)
		}
	}
	incremental := c.task(backup.Verify)
	incremental.ID = sets[2].Label
	if r := c.do(incremental); r.Failure != nil || r.Backup.Verified == nil {
		t.Errorf("verify an incremental backup: %+v", r.Failure)
	}

	if oldest := pgbackrest.Spare(c.sets(), nil); oldest != "" {
		t.Errorf("%s may expire, though what depends on it is the newest that was verified", oldest)
	}
	if r := c.do(c.task(backup.Verify)); r.Failure != nil {
		t.Fatalf("verify the newest backup: %+v", r.Failure)
	}
	oldest := pgbackrest.Spare(c.sets(), nil)
	if oldest != sets[0].Label {
		t.Fatalf("want %s to be the one that may expire, got %q", sets[0].Label, oldest)
	}
	if err := c.tool.Expire(t.Context(), c.stanza, oldest); err != nil {
		t.Fatal(err)
	}
	r := c.do(c.task(backup.Check))
	if r.Catalog.Count != 1 || r.Catalog.Oldest == nil || !r.Catalog.Oldest.Equal(sets[3].First()) {
		t.Errorf("want one backup, which begins what can be restored to, at %s: got %d, %v", sets[3].First(), r.Catalog.Count, r.Catalog.Oldest)
	}
	if _, err := c.recovered(targets[2]); !errors.Is(err, pgbackrest.ErrNone) {
		t.Errorf("recovered to before the first backup that is left: got %v, want %v", err, pgbackrest.ErrNone)
	}
	if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{0, 1, 2, 3, 9}, rows) {
		t.Errorf("recovered to the end: got %v, %v", rows, err)
	}
}
