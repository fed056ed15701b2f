package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VolumePath returns the folder on the node that holds the volume of a PersistentVolumeClaim. The
// error is ErrNotNode if it is not a local volume.
func (c *Cluster) VolumePath(ctx context.Context, namespace, claim string) (string, error) {
	pvc, err := c.Kube.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get volume claim %s/%s: %w", namespace, claim, err)
	}
	pv, err := c.Kube.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot get the volume of claim %s/%s: %w", namespace, claim, err)
	}
	if pv.Spec.Local == nil {
		return "", ErrNotNode
	}
	return pv.Spec.Local.Path, nil
}

// smallDisks is the folder of the disk images that Shrink creates. They are named after their
// volumes.
func smallDisks() string { return filepath.Join(os.TempDir(), "storeplane-e2e-disks") }

// Shrink moves a volume, with its content, to a disk of its own of the given size in MiB. No pod
// may have mounted the volume. Without it, all volumes of the embedded cluster's node share one
// disk, which must not become full.
func Shrink(ctx context.Context, path string, mib int64) error {
	if os.Getuid() != 0 {
		return ErrNotNode
	}
	if err := os.MkdirAll(smallDisks(), 0o700); err != nil {
		return fmt.Errorf("cannot make a folder for disks: %w", err)
	}
	image := filepath.Join(smallDisks(), filepath.Base(path))
	file, err := os.Create(image)
	if err != nil {
		return fmt.Errorf("cannot make a disk: %w", err)
	}
	if err := errors.Join(file.Truncate(mib<<20), file.Close()); err != nil {
		return fmt.Errorf("cannot make a disk: %w", err)
	}
	mounted := image + ".mounted"
	script := `set -eu
mkfs.ext4 -q -F -m 0 "$1"
mkdir -p "$2"
mount -o loop "$1" "$2"
rmdir "$2/lost+found"
cp -a "$3/." "$2/"
umount "$2"
rmdir "$2"
mount -o loop "$1" "$3"`
	if out, err := exec.CommandContext(ctx, "sh", "-c", script, "sh", image, mounted, path).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot move volume %s to a disk of its own: %w: %s", path, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Unshrink removes all disks of Shrink and what is on them. No pod may have mounted them.
func Unshrink() error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("cannot read what is mounted: %w", err)
	}
	images, err := filepath.Glob(filepath.Join(smallDisks(), "*"))
	if err != nil {
		return fmt.Errorf("cannot list disks: %w", err)
	}
	var errs []error
	for _, image := range images {
		for line := range strings.Lines(string(mounts)) {
			fields := strings.Fields(line)
			if len(fields) > 1 && filepath.Base(fields[1]) == filepath.Base(image) {
				if err := syscall.Unmount(fields[1], 0); err != nil {
					errs = append(errs, fmt.Errorf("cannot unmount %s: %w", fields[1], err))
				}
			}
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return os.RemoveAll(smallDisks())
}

// fillFile is the name of the file that fills a disk.
const fillFile = "e2e-fill"

// Fill fills a disk that Shrink created. The returned function frees it again.
func Fill(path string) (free func() error, err error) {
	if _, err := os.Stat(filepath.Join(smallDisks(), filepath.Base(path))); err != nil {
		return nil, fmt.Errorf("cannot fill %s, which is no disk of its own: %w", path, ErrNotNode)
	}
	file, err := os.Create(filepath.Join(path, fillFile))
	if err != nil {
		return nil, fmt.Errorf("cannot fill a disk: %w", err)
	}
	free = func() error { return os.Remove(file.Name()) }
	var room syscall.Statfs_t
	if err = syscall.Fstatfs(int(file.Fd()), &room); err == nil {
		// Allocate most of it at once, which needs no writing.
		err = syscall.Fallocate(int(file.Fd()), 0, 0, max(1, int64(room.Bavail)*room.Bsize*9/10)) //nolint:gosec // The disk is small.
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekEnd)
	}
	block := make([]byte, 1<<12)
	for err == nil {
		_, err = file.Write(block)
	}
	if cerr := file.Close(); cerr != nil || !errors.Is(err, syscall.ENOSPC) {
		return nil, errors.Join(fmt.Errorf("cannot fill a disk: %w", err), cerr, free())
	}
	return free, nil
}
