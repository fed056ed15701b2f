package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gocloud.dev/blob/fileblob"
	"golang.org/x/sys/unix"

	"github.com/storeplane/storeplane/internal/backup"
)

// openVolume opens the folder at which a volume is mounted.
func (s *Store) openVolume(dir string, sync func(string) error) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return backup.Errorf(backup.BucketMissing, "it is not mounted")
	}
	s.readable = func(folder string) error { return readable(filepath.Join(dir, folder)) }
	for _, folder := range s.folders.all() {
		if err := s.readable(folder); err != nil {
			return err
		}
	}
	if sync == nil {
		sync = syncfs
	}
	s.commit = func() error { return sync(dir) }
	var err error
	s.bucket, err = fileblob.OpenBucket(dir, &fileblob.Options{
		// Only the user and the group of the pods may read backups.
		DirFileMode: 0o770,
		// Files are written beside their final path, since /tmp is another file system.
		NoTempDir: true,
		Metadata:  fileblob.MetadataDontWrite,
	})
	s.tidy = func(folder string) { _ = os.Remove(filepath.Join(dir, folder)) }
	// The time of a file's last change cannot be set, unlike its modification time, which any
	// writer can set.
	s.written = func(key string) time.Time {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, key), &st); err != nil {
			return time.Time{}
		}
		return time.Unix(st.Ctim.Unix())
	}
	return err
}

// readable returns an error if a folder, or that of one of the backups in it, cannot be read: a
// listing omits such folders, as if the backups did not exist.
func readable(folder string) error {
	entries, err := readDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, _, ok := backupOf(e.Name() + "/"); !ok || !e.IsDir() {
			continue
		}
		if _, err := readDir(filepath.Join(folder, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// readDir returns what is in a folder, which may have been deleted.
func readDir(dir string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read its folder: %w", err)
	}
	return entries, nil
}

// syncfs writes what the file system with a folder holds in memory to its disk.
func syncfs(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // It is where the volume is mounted.
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.Syncfs(int(f.Fd()))
}
