package pgdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

// firstDatabases is how many databases initdb creates: template1, template0 and postgres.
const firstDatabases = 3

// optionsFile has the command line of a server's last start. PostgreSQL writes it at each start, and
// initdb does not.
const optionsFile = "postmaster.opts"

// NeverStarted reports whether a directory holds what initdb has created, or a part of it, and no
// server has ever run there: nothing was written that could be lost. A base backup has a label
// instead of the file by which that shows. What cannot be read is an error, and not missing.
func NeverStarted(dir string) (bool, error) {
	for _, file := range []string{optionsFile, "backup_label", "standby.signal", "recovery.signal"} {
		if has, err := has(dir, file); has || err != nil {
			return false, err
		}
	}
	if has, err := has(dir, "PG_VERSION"); !has || err != nil {
		return false, err
	}
	databases, err := os.ReadDir(filepath.Join(dir, "base"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot list the databases: %w", err)
	}
	return len(databases) <= firstDatabases, nil
}

func has(dir, file string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot read the data: %w", err)
	}
	return err == nil, nil
}

// SetAsideNeverStarted makes room for another initdb where one has left its data, and returns where
// that is now, or "". An initdb that was killed has left a part of a database, which Patroni 4.0.7
// neither completes nor removes: it waits for ever, or starts it and publishes its identifier. One
// that ended just before its pod has left a database without the roles that Patroni creates next, and
// never creates then (Bootstrap.post_bootstrap).
func SetAsideNeverStarted(dir string) (string, error) {
	if never, err := NeverStarted(dir); !never || err != nil {
		return "", err
	}
	return volume.SetAside(dir, "initdb")
}
