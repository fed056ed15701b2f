package physical

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// TestMarksStay: a backup that is verified while another one is made stays marked.
func TestMarksStay(t *testing.T) {
	c := newCluster(t)
	c.backUp("full")
	old := c.sets()[0]
	c.noise("big", 100)
	j := c.job(c.backupTask())
	j.markEvery = 50 * time.Millisecond
	done := make(chan error, 1)
	go func() { done <- j.backUp(t.Context()) }()
	folders := filepath.Join(c.path("repo"), "backup", c.stanza, "*F")
	c.wait("another backup begins", func() bool {
		found, err := filepath.Glob(folders)
		return err == nil && len(found) > 1
	})
	when := time.Now().UTC().Truncate(time.Second)
	if err := c.tool.MarkVerified(t.Context(), old, when); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sets := c.sets()
	if len(sets) != 2 {
		t.Fatalf("there are %d backups, want 2: the mark came too late to be lost", len(sets))
	}
	if !sets[0].Verified.Equal(when) {
		t.Errorf("backup %s was verified at %v, want %v", sets[0].Label, sets[0].Verified, when)
	}
	if spare := pgbackrest.Spare(sets, nil); spare != "" {
		t.Errorf("backup %s may expire for lack of room, though no younger one is verified", spare)
	}
}
