package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrNoRoom is the error for a volume that has no room for a second copy of its data.
var ErrNoRoom = errors.New("the volume has no room for both")

// fullest is how full a volume may be, in percent, with data that was set aside and a copy
// beside it. A fuller volume would be reported.
const fullest = 80

// HasRoom reports whether a volume has room for a second copy of a directory of data on it. It takes
// the size of the data for that of the copy, since copies of one cluster are about equally large.
func HasRoom(dir string) (bool, error) {
	size, err := sizeOf(dir)
	if err != nil {
		return false, err
	}
	used, total, err := Usage(filepath.Dir(dir))
	return err == nil && fits(used, total, size), err
}

// SetAside renames a directory of data, so that another copy can take its place, and returns
// the new path. It returns ErrNoRoom if a second copy would not fit (HasRoom).
func SetAside(dir, why string) (string, error) {
	room, err := HasRoom(dir)
	if err != nil {
		return "", err
	}
	if !room {
		return "", ErrNoRoom
	}
	aside := fmt.Sprintf("%s-%s-%s", dir, why, time.Now().UTC().Format("20060102T150405Z"))
	if err := os.Rename(dir, aside); err != nil {
		return "", fmt.Errorf("cannot set the data aside: %w", err)
	}
	return aside, nil
}

// fits reports whether a volume has room for more bytes.
func fits(used, total, more uint64) bool { return (used+more)*100 <= total*fullest }

// sizeOf returns the size of all files in a directory. A process that is being killed may remove some
// meanwhile.
func sizeOf(dir string) (uint64, error) {
	var size uint64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		size += uint64(info.Size()) //nolint:gosec // it is not negative
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot measure the data: %w", err)
	}
	return size, nil
}
