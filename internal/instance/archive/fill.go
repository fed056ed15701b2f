package archive

import (
	"context"
	"io"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// Fill a gap in the archive with what is on this server's volume, up to the
// segment of a number that the server has not replayed to its end. It is for a
// standby that has what the primary does not have.
func Fill(ctx context.Context, c Config, gap wal.Range, replayed uint64, log io.Writer) error {
	lineage, err := c.lineage(gap.Last.Timeline)
	if err != nil {
		return err
	}
	here, err := c.segments()
	if err != nil {
		return err
	}
	for n := gap.First.Number; n <= gap.Last.Number && n < replayed; n++ {
		segment := lineage.At(n)
		if !here[segment] {
			continue
		}
		// At once, and alone: PostgreSQL archives nothing on a standby.
		if err := push(ctx, c, filepath.Join(c.walDir(), segment.String()), log, "--no-archive-async"); err != nil {
			return err
		}
	}
	return nil
}
