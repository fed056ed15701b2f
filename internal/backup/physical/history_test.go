package physical

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNoHistory: an archive that began after a failover lacks the history of the timeline that it
// holds: it was emptied, the claim moved to it, or it was enabled late. Its content is restored all
// the same, to its end and to a time.
func TestNoHistory(t *testing.T) {
	t.Parallel()
	c := filled(t, 2)
	c.run("pg_ctl", "-D", c.path("data"), "-w", "-m", "fast", "stop")
	if err := os.WriteFile(c.path("data/standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.start()
	c.run("pg_ctl", "-D", c.path("data"), "-w", "promote")
	c.awaitArchived()

	if err := os.RemoveAll(c.path("repo")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(c.path("repo"), 0o700); err != nil {
		t.Fatal(err)
	}
	c.must(c.tool.Run(t.Context(), c.stanza, "stanza-create", c.local...))
	c.backUp("full")
	c.exec("INSERT INTO t VALUES (3)")
	time.Sleep(1100 * time.Millisecond) // pgBackRest counts in seconds
	between := c.now()
	c.exec("INSERT INTO t VALUES (4)")
	c.archive()
	if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{1, 2, 3, 4}, rows) {
		t.Errorf("recovered to the end: got %v, %v", rows, err)
	}
	if rows, err := c.recovered(between); err != nil || !cmp.Equal([]int64{1, 2, 3}, rows) {
		t.Errorf("recovered to a time: got %v, %v", rows, err)
	}

	// After the next failover there is a history again.
	c.run("pg_ctl", "-D", c.path("data"), "-w", "-m", "fast", "stop")
	if err := os.WriteFile(c.path("data/standby.signal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.start()
	c.run("pg_ctl", "-D", c.path("data"), "-w", "promote")
	c.exec("INSERT INTO t VALUES (5)")
	c.archive()
	c.awaitArchived()
	if rows, err := c.recovered(time.Time{}); err != nil || !cmp.Equal([]int64{1, 2, 3, 4, 5}, rows) {
		t.Errorf("recovered to the end after a failover: got %v, %v", rows, err)
	}
}
