package physical

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// TestDeleteLeavesLogicalBackups: deletion removes only what pgBackRest has written, even if there
// are logical backups in its folders.
func TestDeleteLeavesLogicalBackups(t *testing.T) {
	c := newCluster(t)
	c.backUp("full")
	// A restored cluster has a stanza of its own.
	restored := pgbackrest.StanzaOf(c.stanza, "a1b2c3d4")
	c.must(c.tool.Run(t.Context(), restored, "stanza-create", c.local...))
	stays := []string{
		"logical/20260101T020000Z-abcdef/manifest.json",        // of a Backup with the cluster's name
		"20260101T020000Z-abcdef/manifest.json",                // of such a Backup in the first layout
		"backup/logical/20260101T020000Z-abcdef/manifest.json", // of a Backup named backup, whose prefix is the cluster's folder
		"archive/logical/20260101T020000Z-abcdef/manifest.json",
	}
	for _, name := range stays {
		if err := os.MkdirAll(filepath.Join(c.path("repo"), filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.path("repo"), name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.do(c.task(backup.Check)); r.Failure != nil || r.Catalog.Count != 1 {
		t.Errorf("check: got %+v, %+v", r.Failure, r.Catalog)
	}
	if r := c.do(c.task(backup.Delete)); r.Failure != nil || r.Catalog.Count != 0 {
		t.Errorf("delete: got %+v, %+v", r.Failure, r.Catalog)
	}
	for _, name := range stays {
		if _, err := os.Stat(filepath.Join(c.path("repo"), name)); err != nil {
			t.Errorf("a logical backup is gone with the repository: %v", err)
		}
	}
	for _, folder := range []string{"backup", "archive"} {
		for _, stanza := range []string{c.stanza, restored} {
			if _, err := os.Stat(filepath.Join(c.path("repo"), folder, stanza)); err == nil {
				t.Errorf("the repository is still there: %s/%s", folder, stanza)
			}
		}
	}
}
