package mysqld

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// Files are the files of a server's volume.
type Files struct {
	// Volume is where the volume is mounted.
	Volume string

	// Room reports whether the volume has room for a copy of a member beside the data. It is
	// volume.HasRoom if it is nil.
	Room func(dir string) (bool, error)
}

const (
	// dataFolder is the data directory, and newFolder one that is being initialized: it gets its
	// name once it is complete, so that what has the name is.
	dataFolder = "data"
	newFolder  = "data.new"

	// partSuffix is the end of the name of a folder that a backup is being unpacked into (Fetch in package
	// run).
	partSuffix = ".part"

	// copyFile exists from before a copy of another server is begun until it is complete.
	copyFile = "copy-unfinished"

	// identityFile has the server's UUID.
	identityFile = "auto.cnf"

	// cloneError is the file that MySQL has while it copies another server over its data. It removes
	// it when it starts the next time
	// (https://github.com/mysql/mysql-server/blob/trunk/storage/innobase/include/clone0clone.h).
	cloneError = "#clone/#status_error"

	// aside and failed are in the names of folders of data that was set aside: of data that no other server has, and
	// of data with which a server could not be brought up to date.
	aside  = "aside"
	failed = "failed"

	// temporaryFolder is the folder of the server's temporary files. They can be as large as its
	// tables.
	temporaryFolder = "tmp"
)

// DataDir returns the data directory.
func (f Files) DataDir() string { return filepath.Join(f.Volume, dataFolder) }

// TemporaryDir returns the folder of the server's temporary files.
func (f Files) TemporaryDir() string { return filepath.Join(f.Volume, temporaryFolder) }

// clear removes what a server has left that was killed. A file with the number of its process would
// prevent the next one from starting if another process has that number by now.
func (f Files) clear(o Options) error {
	for _, name := range []string{o.Socket(), o.Socket() + ".lock", o.pidFile(), f.TemporaryDir()} {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("cannot remove what a server has left that was killed: %w", err)
		}
	}
	if err := os.Mkdir(f.TemporaryDir(), 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of temporary files: %w", err)
	}
	return nil
}

// DropTemporary removes what a server has left that was killed and that no start uses: temporary files and temporary
// tables (https://dev.mysql.com/doc/refman/9.7/en/innodb-temporary-tablespace.html). The server must not run.
func (f Files) DropTemporary() error {
	names := []string{filepath.Join(f.DataDir(), "ibtmp1")}
	for _, pattern := range []string{filepath.Join(f.TemporaryDir(), "*"), filepath.Join(f.DataDir(), "#innodb_temp", "*.ibt")} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return fmt.Errorf("cannot find temporary files: %w", err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("cannot remove temporary files: %w", err)
		}
	}
	return nil
}

// Data returns what the volume holds.
func (f Files) Data() (group.Data, error) {
	there, err := exists(f.DataDir())
	if err != nil || !there {
		return group.Empty, err
	}
	for _, name := range []string{filepath.Join(f.Volume, copyFile), filepath.Join(f.DataDir(), cloneError)} {
		if unfinished, err := isFile(name); err != nil || unfinished {
			return group.Copy, err
		}
	}
	return group.Whole, nil
}

// BeginCopy records that the data is about to be replaced by a copy of another server's, with the UUID
// that the server has before.
func (f Files) BeginCopy() error {
	marker := filepath.Join(f.Volume, copyFile)
	if there, err := isFile(marker); err != nil || there {
		return err
	}
	// A folder of the name is a copy that a user has had the server write there.
	if err := os.RemoveAll(marker); err != nil {
		return fmt.Errorf("cannot record that a copy begins: %w", err)
	}
	before, err := os.ReadFile(filepath.Join(f.DataDir(), identityFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read the identity of the server: %w", err)
	}
	if err := os.WriteFile(marker, before, 0o600); err != nil { //nolint:gosec // a file of the volume
		return fmt.Errorf("cannot record that a copy begins: %w", err)
	}
	return syncFolder(f.Volume)
}

// Before reports whether a server had this UUID when its copy of another one began: a copy gives it
// another one. known is false if it had none then.
func (f Files) Before(uuid string) (same, known bool, err error) {
	before, err := os.ReadFile(filepath.Join(f.Volume, copyFile))
	if err != nil {
		return false, false, fmt.Errorf("cannot read which server has begun a copy: %w", err)
	}
	return strings.Contains(string(before), uuid), len(before) > 0, nil
}

// ForgetIdentity has the server be one with another UUID from its next start on. A standalone server numbers transactions by its
// UUID: with an older state of its volume it would go on with numbers that an archive has of other transactions. The
// server must not run.
func (f Files) ForgetIdentity() error {
	if err := os.RemoveAll(filepath.Join(f.DataDir(), identityFile)); err != nil {
		return fmt.Errorf("cannot remove the identity of the server: %w", err)
	}
	return syncFolder(f.DataDir())
}

// EndCopy records that the copy is complete.
func (f Files) EndCopy() error {
	if err := os.RemoveAll(filepath.Join(f.Volume, copyFile)); err != nil {
		return fmt.Errorf("cannot record that a copy is complete: %w", err)
	}
	return syncFolder(f.Volume)
}

// HasRoom reports whether the volume has room for a copy of a member beside the data.
func (f Files) HasRoom() (bool, error) {
	if f.Room != nil {
		return f.Room(f.DataDir())
	}
	return volume.HasRoom(f.DataDir())
}

// Aside returns the name of the folder for data that is set aside at a time: for data that no other server has if own
// is true.
func (f Files) Aside(own bool, at time.Time) string {
	why := failed
	if own {
		why = aside
	}
	return dataFolder + "-" + why + "-" + at.UTC().Format("20060102T150405Z")
}

// ForgetFailed removes what was set aside before and other servers had: there may be no room for more because of it.
func (f Files) ForgetFailed() error {
	former, err := filepath.Glob(f.DataDir() + "-" + failed + "-*")
	if err != nil {
		return fmt.Errorf("cannot find what was set aside before: %w", err)
	}
	for _, name := range former {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("cannot remove what was set aside before: %w", err)
		}
	}
	return nil
}

// SetAside moves the data to another folder of the volume. What was set aside before stays if no other server had it.
// The server must not run.
func (f Files) SetAside(folder string) error {
	if err := f.ForgetFailed(); err != nil {
		return err
	}
	if err := os.Rename(f.DataDir(), filepath.Join(f.Volume, folder)); err != nil {
		return fmt.Errorf("cannot set the data aside: %w", err)
	}
	return errors.Join(f.EndCopy(), syncFolder(f.Volume))
}

// prepare removes what an initialization or a restore that did not end has left, and returns the folder
// of the next one.
func (f Files) prepare() (string, error) {
	folder := filepath.Join(f.Volume, newFolder)
	for _, name := range []string{folder, folder + partSuffix} {
		if err := os.RemoveAll(name); err != nil {
			return "", fmt.Errorf("cannot remove an unfinished data directory: %w", err)
		}
	}
	return folder, nil
}

// adopt gives an initialized folder the name of the data directory.
func (f Files) adopt(folder string) error {
	if err := os.Rename(folder, f.DataDir()); err != nil {
		return fmt.Errorf("cannot take over the initialized data directory: %w", err)
	}
	return syncFolder(f.Volume)
}

// isFile reports whether a regular file exists.
func isFile(name string) (bool, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot find %s: %w", name, err)
	}
	return info.Mode().IsRegular(), nil
}

func exists(name string) (bool, error) {
	_, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot find %s: %w", name, err)
	}
	return true, nil
}

// syncFolder writes a folder's entries to the disk.
func syncFolder(folder string) error {
	d, err := os.Open(folder) //nolint:gosec // the volume, or a folder of it
	if err != nil {
		return fmt.Errorf("cannot write %s to the disk: %w", folder, err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("cannot write %s to the disk: %w", folder, err)
	}
	return nil
}
