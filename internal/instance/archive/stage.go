package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// A restore may be killed at any time, and Patroni takes any data folder with a
// control file for a cluster that is to be started. So a restore works in a folder
// beside, which becomes the data folder in one step once all is done. Until then
// Patroni 4.0.7 finds no data folder, and calls the restore again (Ha._run_cycle).

// stage is the folder in which a restore works. It is on the volume of the data.
func (c Config) stage() string { return c.DataDir() + ".restoring" }

// vacant says whether there is no data yet, by Patroni's rule.
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

// deliver what was restored: it has a place of its own, and is the data folder.
func (c Config) deliver() error {
	// It names files of the recovery. Each start of a server writes it.
	if err := os.Remove(filepath.Join(c.stage(), "postmaster.opts")); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	// What is left there is no data, and a folder is renamed to an empty one alone.
	if err := os.RemoveAll(c.DataDir()); err != nil {
		return fmt.Errorf("cannot remove the empty data folder: %w", err)
	}
	if err := os.Rename(c.stage(), c.DataDir()); err != nil {
		return fmt.Errorf("cannot put the restored data in its place: %w", err)
	}
	return syncFile(c.Volume)
}

// ForgetRestore removes what a restore has left on the volume that was interrupted,
// and what it said.
func (c Config) ForgetRestore() error {
	// Under its name it could become the data folder when half of it is gone.
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

// syncFile, or the names in a folder, to the disk.
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
