package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// spoolVariable is pgBackRest's variable for the folder of its spool. It takes precedence over the
// configuration.
const spoolVariable = "PGBACKREST_SPOOL_PATH"

// ErrMoved is the error for a segment that was pushed while the destination changed, so that the
// new one may not have it.
var ErrMoved = errors.New("the destination of backups has changed meanwhile: the segment is archived again")

// spool returns the folder in which pgBackRest notes the segments that it has pushed to the present
// destination. Each has its own: pgBackRest takes what is noted there for archived, and a process
// for a former destination may continue for hours. That of a volume is not in pgBackRest's
// configuration, since the server that serves it has the same name for all.
func (c Config) spool() (string, error) {
	digest := sha256.New()
	for _, name := range []string{pgbackrest.FileConfig, instance.BackupFile} {
		content, err := os.ReadFile(filepath.Join(c.Repository, name)) //nolint:gosec // the folder is the pod's
		if errors.Is(err, fs.ErrNotExist) {
			return "", ErrNone
		}
		if err != nil {
			return "", fmt.Errorf("cannot read where backups are: %w", err)
		}
		digest.Write(content)
	}
	const length = 8
	return filepath.Join(cmp.Or(os.Getenv(spoolVariable), pgbackrest.SpoolDir), hex.EncodeToString(digest.Sum(nil)[:length])), nil
}

// unmoved returns ErrMoved if the spool is no longer that of the present destination.
func (c Config) unmoved(spool string) error {
	now, err := c.spool()
	if err == nil && now != spool {
		err = ErrMoved
	}
	return err
}

// forgetPushed removes pgBackRest's note that it has pushed a segment, if there is one: a store may
// lose the segment after that.
func forgetPushed(spool, stanza string, s wal.Segment) error {
	err := os.Remove(filepath.Join(spool, "archive", stanza, "out", s.String()+".ok"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot have segment %s pushed again: %w", s, err)
	}
	return nil
}
