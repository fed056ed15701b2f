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
func (s *Store) openVolume(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return backup.Errorf(backup.BucketMissing, "it is not mounted")
	}
	// A listing omits folders that it cannot read, so they are checked here.
	for _, folder := range s.folders.all() {
		if _, err := os.ReadDir(filepath.Join(dir, folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read its folder: %w", err)
		}
	}
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
