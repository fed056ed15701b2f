package physical

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// filled returns a cluster with one row in a backup, and one more in each following WAL segment.
func filled(t *testing.T, rows int) *cluster {
	t.Helper()
	c := newCluster(t)
	c.exec("CREATE TABLE t (id bigint)")
	c.exec("INSERT INTO t VALUES (1)")
	c.backUp("full")
	// pgBackRest records whole seconds: what is later than the next one can be restored to.
	first := c.now().Truncate(time.Second).Add(time.Second)
	for range rows - 1 {
		c.exec("INSERT INTO t SELECT max(id) + 1 FROM t")
		c.exec("SELECT pg_switch_wal()")
	}
	for !c.now().After(first) {
		continue
	}
	c.archive()
	return c
}

// TestFirst: a busy database can be restored to the first recoverable time.
func TestFirst(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.exec("CREATE TABLE t (id bigint)")
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c.exec("INSERT INTO t VALUES (1)")
			}
		}
	})
	c.backUp("full")
	sets, err := c.tool.Sets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first := *pgbackrest.Catalog(sets, c.stanza).Oldest
	for c.now().Before(first.Add(time.Second)) {
	}
	close(stop)
	writer.Wait()
	c.archive()
	if rows, err := c.recovered(first); err != nil || len(rows) == 0 {
		t.Errorf("recovered to the first recoverable time, %s: got %d rows, %v", first, len(rows), err)
	}
}

// TestTwoDatabases: a place holds the backups of a database that is gone, and of an empty one that
// was created under its name.
func TestTwoDatabases(t *testing.T) {
	t.Parallel()
	gone := filled(t, 2)
	c := newClusterAt(t, gone.path("repo"))
	c.exec("CREATE TABLE t (id bigint)")
	c.backUp("full")
	c.archive()

	sets, err := c.tool.Sets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = pgbackrest.Choose(sets, "", time.Time{}, time.Now())
	if !errors.Is(err, pgbackrest.ErrSystems) || !strings.Contains(err.Error(), gone.stanza) || !strings.Contains(err.Error(), c.stanza) {
		t.Errorf("choose a backup of two databases: got %v", err)
	}
	if rows, err := gone.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{1, 2}, rows) {
		t.Errorf("recovered the one that is gone: got %v, %v", rows, err)
	}

	verified := gone.do(gone.task(backup.Verify))
	if verified.Failure != nil || verified.Rows != 1 {
		t.Errorf("verify the one that is gone: got %+v", verified)
	}
	r := c.do(c.task(backup.Check))
	if r.Failure != nil || r.Catalog.Count != 1 || r.Catalog.Verified != nil {
		t.Errorf("check the new one: got %+v, %+v", r.Failure, r.Catalog)
	}
	want := []backup.System{{ID: gone.stanza, Count: 1, First: sets[0].First(), Last: sets[0].First()}}
	if diff := cmp.Diff(want, r.Catalog.Others); diff != "" {
		t.Errorf("others in the same place: -want, +got:\n%s", diff)
	}
	if want := sets[1].First(); r.Catalog.System != c.stanza || !r.Catalog.Oldest.Equal(want) {
		t.Errorf("the first recoverable time of %s: got %s of %s, want %s", c.stanza, r.Catalog.Oldest, r.Catalog.System, want)
	}
}
