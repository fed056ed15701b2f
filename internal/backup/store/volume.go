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

// openVolume opens a folder that a volume is mounted at.
func (s *Store) openVolume(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return backup.Errorf(backup.BucketMissing, "it is not mounted")
	}
	// A list leaves out what it cannot read.
	for _, folder := range s.folders.all() {
		if _, err := os.ReadDir(filepath.Join(dir, folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot read its folder: %w", err)
		}
	}
	var err error
	s.bucket, err = fileblob.OpenBucket(dir, &fileblob.Options{
		// Nobody but the pods' own user and group reads backups.
		DirFileMode: 0o770,
		// A file is written beside where it belongs: /tmp is another file system.
		NoTempDir: true,
		Metadata:  fileblob.MetadataDontWrite,
	})
	s.tidy = func(folder string) { _ = os.Remove(filepath.Join(dir, folder)) }
	// A file's modification time is for any writer to set, and that of its last change for
	// none.
	s.written = func(key string) time.Time {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, key), &st); err != nil {
			return time.Time{}
		}
		return time.Unix(st.Ctim.Unix())
	}
	return err
}
