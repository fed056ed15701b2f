package physical

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/storeplane/storeplane/internal/backup"
)

// TestDeleteLeavesLogicalBackups: what is deleted with the repository is what
// pgBackRest made, also where logical backups lie in its folders.
func TestDeleteLeavesLogicalBackups(t *testing.T) {
	c := newCluster(t)
	c.backUp("full")
	stays := []string{
		"logical/20260101T020000Z-abcdef/manifest.json",        // of a Backup of the cluster's name
		"20260101T020000Z-abcdef/manifest.json",                // of one, where they lay at first
		"backup/logical/20260101T020000Z-abcdef/manifest.json", // of one named backup, below a prefix that is the cluster's folder
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
		if _, err := os.Stat(filepath.Join(c.path("repo"), folder, c.stanza)); err == nil {
			t.Errorf("the repository is still there: %s", folder)
		}
	}
}
