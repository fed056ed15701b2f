package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// partial is the suffix of the name of a segment in which a timeline ended. PostgreSQL never
// reads such a segment, since the next timeline has one that begins with the same records.
const partial = ".partial"

// alike reports whether the archive has all records of a segment although its file of that
// name differs. A primary that stops switches to a new segment. A standby that has received
// the switch, but not the padding of the old segment, has other bytes there, and archives them
// once it leads, if the primary has not archived the segment.
func alike(ctx context.Context, tool pgbackrest.Tool, stanza, dataDir, segment string) (bool, error) {
	if strings.HasSuffix(segment, partial) {
		return true, nil
	}
	end, err := pgdata.Switched(ctx, segment)
	if err != nil || end == 0 {
		return false, err
	}
	name := filepath.Base(segment)
	dir, err := os.MkdirTemp("", "archived-")
	if err != nil {
		return false, fmt.Errorf("cannot keep a copy of the archive's segment %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	archived := filepath.Join(dir, name)
	if _, err := tool.Run(ctx, stanza, "archive-get", "--no-archive-async", "--pg1-path="+dataDir, name, archived); err != nil {
		return false, err
	}
	ours, oerr := head(segment, end)
	theirs, terr := head(archived, end)
	if err := errors.Join(oerr, terr); err != nil {
		return false, fmt.Errorf("cannot compare segment %s with the archive's: %w", name, err)
	}
	return bytes.Equal(ours, theirs), nil
}

// head returns the first bytes of a file.
func head(file string, length int64) ([]byte, error) {
	f, err := os.Open(file) //nolint:gosec // the folders are the pod's
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out := make([]byte, length)
	_, err = io.ReadFull(f, out)
	return out, err
}
