package store

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

var id = backup.NewID(time.Now())

// volume returns a store on a volume with one file of a backup, and the folder of that backup.
func volume(t *testing.T, o Options) (*Store, string) {
	t.Helper()
	o.Volume = t.TempDir()
	s, err := Open(t.Context(), backupv1.Destination{Type: backupv1.Volume, Bucket: "backups"}, "team/shop/orders", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Write(t.Context(), id+"/"+backup.ManifestObject, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return s, filepath.Join(o.Volume, filepath.Dir(s.key(id+"/"+backup.ManifestObject)))
}

// TestUnreadable: a backup whose folder cannot be read is not taken for one that does not exist.
func TestUnreadable(t *testing.T) {
	s, folder := volume(t, Options{})
	if l, err := s.List(t.Context()); err != nil || len(l.Items) != 1 {
		t.Fatalf("want one backup, got %v, %v", l, err)
	}
	if err := os.Chmod(folder, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) }) //nolint:gosec // It is a folder.
	var l *Listing
	var err error
	asAnyUser(t, folder, func() { l, err = s.List(t.Context()) })
	if backup.ReasonOf(err) != backup.StoreDenied {
		t.Errorf("want %s, got %v, %v", backup.StoreDenied, l, err)
	}
}

// asAnyUser calls do as a user without privileges, to whom all folders above the given one are open.
func asAnyUser(t *testing.T, folder string, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	for dir := filepath.Dir(folder); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // It is a folder of the test.
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, since it is locked until then.
		runtime.LockOSThread()
		err := unix.Setfsuid(65534)
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestVerificationGone: a backup that expires while it is listed loses its verification first, which
// does not make the listing fail.
func TestVerificationGone(t *testing.T) {
	s, _ := volume(t, Options{})
	item, err := s.item(t.Context(), id, map[string]object{backup.VerificationObject: {}, backup.ManifestObject: {}})
	if err != nil || item.Verified != nil {
		t.Errorf("want no error, and no verification, got %v, %v", err, item.Verified)
	}
}

// TestCommit: what is not on the disk is not taken for written.
func TestCommit(t *testing.T) {
	s, _ := volume(t, Options{})
	if err := s.Commit(); err != nil {
		t.Error(err)
	}
	s, _ = volume(t, Options{Sync: func(string) error { return syscall.ENOSPC }})
	if err := s.Commit(); backup.ReasonOf(err) != backup.StoreFull {
		t.Errorf("want %s, got %v", backup.StoreFull, err)
	}
}
