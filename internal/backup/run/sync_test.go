package run

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestSync: a backup counts, and older ones expire for it, once it is on the disk of the volume. A
// node that fails before that would lose both.
func TestSync(t *testing.T) {
	s := sources[backupv1.PostgreSQL](t)
	createDatabase(t, s, "shop")
	d := newVolume(t)
	f := newFixture(t, s, "shop", d)
	f.task.Retention, f.task.Keep = "", &backupv1.Keep{Last: 1}
	manifests := func() int {
		n := 0
		must(t, filepath.WalkDir(d.volume, func(path string, _ fs.DirEntry, err error) error {
			if filepath.Base(path) == backup.ManifestObject {
				n++
			}
			return err
		}))
		return n
	}
	f.succeed(backup.Backup)
	f.Sync = func(string) error { return syscall.ENOSPC }
	f.fail(backup.Backup, backup.StoreFull)
	if n := manifests(); n != 1 {
		t.Errorf("there are %d backups after one that is not on the disk, want the first", n)
	}
	var seen []int
	f.Sync = func(string) error { seen = append(seen, manifests()); return nil }
	f.succeed(backup.Backup)
	if diff := cmp.Diff([]int{1, 2}, seen); diff != "" {
		t.Errorf("backups in the store as it was synced, before and after the manifest: -want, +got:\n%s", diff)
	}
	if n := manifests(); n != 1 {
		t.Errorf("%d backups are left, want one", n)
	}
}
