package harness

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a disk is mounted by root")
	}
	t.Setenv("TMPDIR", t.TempDir())
	volume := filepath.Join(t.TempDir(), "pvc-1")
	if err := errors.Join(os.Mkdir(volume, 0o700), os.Chmod(volume, 0o770)); err != nil { //nolint:gosec // The provisioner creates folders with this mode.
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(volume, "data"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Fill(volume); !errors.Is(err, ErrNotNode) {
		t.Fatalf("Fill(...) of a folder that shares its disk: got %v, want %v", err, ErrNotNode)
	}
	if err := Shrink(t.Context(), volume, 64); err != nil {
		t.Skipf("no disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := Unshrink(); err != nil {
			t.Errorf("Unshrink(): %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(smallDisks(), "*")); len(left) > 0 {
			t.Errorf("Unshrink() leaves %v", left)
		}
	})
	if got, err := os.ReadFile(filepath.Join(volume, "data")); err != nil || string(got) != "kept" {
		t.Errorf("Shrink(...): the volume has %q, %v", got, err)
	}
	if info, err := os.Stat(volume); err != nil || info.Mode().Perm() != 0o770 {
		t.Errorf("Shrink(...): the volume's folder is %v, %v", info, err)
	}
	free, err := Fill(volume)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(volume, "more"), make([]byte, 1<<16), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Fill(...): the next write ends with %v, want %v", err, syscall.ENOSPC)
	}
	if err := free(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(volume, "more"), make([]byte, 1<<16), 0o600); err != nil {
		t.Errorf("the disk is full after it was freed: %v", err)
	}
}
