package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// placeFile is the file in the data directory that distinguishes the archive of a restored
// cluster from that of the cluster that it was restored from, and of others restored from it:
// all of them have one system identifier, and continue the same timelines. It is part of the
// data, so that standbys and retained volumes have it too.
const placeFile = "storeplane.archive"

// Place returns the suffix that distinguishes the cluster's stanza from others of the same
// system identifier, or "" for a cluster that was not restored.
func (c Config) Place() (string, error) {
	b, err := os.ReadFile(filepath.Join(c.DataDir(), placeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the cluster's place in the repository: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// Stanza returns the name of the stanza of the cluster's WAL and backups in the repository.
func (c Config) Stanza() (string, error) {
	system, err := pgbackrest.Stanza(c.DataDir())
	if err != nil {
		return "", err
	}
	place, err := c.Place()
	return pgbackrest.StanzaOf(system, place), err
}

// takePlace gives a cluster that was restored into a directory a new place of its own, instead
// of the one that came with the backup.
func takePlace(dir string) error {
	drawn := make([]byte, 4)
	_, _ = rand.Read(drawn) // it never fails
	file := filepath.Join(dir, placeFile)
	if err := os.WriteFile(file, []byte(hex.EncodeToString(drawn)+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write the cluster's place in the repository: %w", err)
	}
	return syncFile(file)
}
