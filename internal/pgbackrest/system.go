package pgbackrest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// StanzaOf returns the stanza of a cluster by its system identifier and, if it was restored, the
// suffix that distinguishes it from others with the same one.
func StanzaOf(system, place string) string {
	if place == "" {
		return system
	}
	return system + "-" + place
}

// System returns the system identifier in a stanza.
func System(stanza string) string {
	system, _, _ := strings.Cut(stanza, "-")
	return system
}

// Stanza returns the stanza of the cluster in a data folder, if it was not restored: its system
// identifier, with which PostgreSQL's control file begins. A cluster that is created again under
// the same name has another one, so its backups never mix with the old ones.
func Stanza(dataDir string) (string, error) {
	f, err := os.Open(filepath.Join(dataDir, "global", "pg_control")) //nolint:gosec // the folder is the pod's
	if err != nil {
		return "", fmt.Errorf("cannot read the system identifier: %w", err)
	}
	defer func() { _ = f.Close() }()
	var id uint64
	if err := binary.Read(f, binary.NativeEndian, &id); err != nil {
		return "", fmt.Errorf("cannot read the system identifier: %w", err)
	}
	return strconv.FormatUint(id, 10), nil
}
