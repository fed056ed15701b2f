package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestMultiPart: objects are written in several parts, as for large databases.
func TestMultiPart(t *testing.T) {
	long(t)
	s := loaded(t, startPostgreSQL)
	for kind, start := range destinations {
		t.Run(string(kind), func(t *testing.T) {
			d := start(t)
			f := newFixture(t, s, "shop", d)
			f.ObjectSize = 0 // as in a pod
			made := f.succeed(backup.Backup)
			if made.Backup.Size < 3*(8<<20) {
				t.Errorf("the backup has %d bytes, which are too few parts", made.Backup.Size)
			}
			f.succeed(backup.Verify)
			if kind == backupv1.S3 {
				cancelledParts(t, f, d)
			}
			f.succeed(backup.Delete)
		})
	}
}

// cancelledParts checks that no parts are left of an upload that is cancelled or whose pod is
// killed. No list of objects shows such parts.
func cancelledParts(t *testing.T, f *fixture, d *destination) {
	t.Helper()
	parts := func() int {
		n := 0
		_ = filepath.WalkDir(d.files, func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() && strings.Contains(path, "multipart") {
				n++
			}
			return nil
		})
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		soon(t, "a part", func() bool { return parts() > 1 })
		cancel()
	}()
	r, code := f.do(ctx, backup.Backup)
	<-done
	f.failed(r, code, backup.Interrupted)
	if n := parts(); n > 0 {
		t.Errorf("%d parts are left", n)
	}

	go func() {
		soon(t, "a part", func() bool { return parts() > 1 })
		d.down()
	}()
	r, code = f.do(t.Context(), backup.Backup)
	f.failed(r, code, backup.StoreUnreachable)
	if parts() == 0 {
		t.Error("there are no parts to clean up, so this shows nothing")
	}
	d.up()
	f.succeed(backup.Backup)
	if n := parts(); n > 0 {
		t.Errorf("%d parts are left after the next backup", n)
	}
}
