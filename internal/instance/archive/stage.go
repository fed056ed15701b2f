package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// A restore may be killed at any time, and Patroni starts a server in any data directory that
// has a control file. So a restore works in a directory beside it, which becomes the data
// directory in one step once all is done. Until then Patroni 4.0.7 finds no data directory,
// and calls the restore again (Ha._run_cycle).

// stage returns the directory in which a restore works. It is on the same volume as the data.
func (c Config) stage() string { return c.DataDir() + ".restoring" }

// vacant returns an error if there is data already, by Patroni's rule.
func (c Config) vacant() error {
	empty, err := pgdata.Empty(c.DataDir())
	switch {
	case err != nil:
		return err
	case !empty:
		return fmt.Errorf("cannot restore: folder %s holds data already", c.DataDir())
	}
	return nil
}

// deliver gives the restored data a place in the repository and makes it the data directory.
func (c Config) deliver() error {
	// postmaster.opts names files of the recovery, and shows that a server has run with the data.
	// PostgreSQL writes it again at each start.
	if err := os.WriteFile(filepath.Join(c.stage(), "postmaster.opts"), nil, 0o600); err != nil {
		return fmt.Errorf("cannot remove the options of the recovery: %w", err)
	}
	if err := takePlace(c.stage()); err != nil {
		return err
	}
	if err := syncFile(c.stage()); err != nil {
		return err
	}
	if err := c.vacant(); err != nil {
		return err
	}
	// The data directory holds no data, and a directory can be renamed only to an empty one.
	if err := os.RemoveAll(c.DataDir()); err != nil {
		return fmt.Errorf("cannot remove the empty data folder: %w", err)
	}
	if err := os.Rename(c.stage(), c.DataDir()); err != nil {
		return fmt.Errorf("cannot put the restored data in its place: %w", err)
	}
	return syncFile(c.Volume)
}

// ForgetRestore removes the files and the noted state of an interrupted restore.
func (c Config) ForgetRestore() error {
	// Under its own name the directory could become the data directory when half of it is
	// removed.
	gone := c.stage() + ".gone"
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("cannot remove an interrupted restore: %w", err)
	}
	if err := os.Rename(c.stage(), gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove an interrupted restore: %w", err)
	}
	if err := os.RemoveAll(gone); err != nil {
		return fmt.Errorf("cannot remove an interrupted restore: %w", err)
	}
	if err := os.Remove(c.stateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget an earlier restore: %w", err)
	}
	return nil
}

// syncFile writes a file, or the entries of a directory, to the disk.
func syncFile(name string) error {
	f, err := os.Open(name) //nolint:gosec // the volume is the pod's
	if err != nil {
		return fmt.Errorf("cannot write to the disk: %w", err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("cannot write to the disk: %w", err)
	}
	return nil
}
