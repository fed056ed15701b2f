package archive

import (
	"context"
	"io"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// Fill fills a gap in the archive with segments from this server's volume, except for those
// from number replayed on, which the server has not replayed to their end. It is for a standby
// that has segments that the primary no longer has.
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
		// Synchronously: the asynchronous process archives what PostgreSQL has queued, and a
		// standby queues nothing.
		if err := push(ctx, c, filepath.Join(c.walDir(), segment.String()), log, "--no-archive-async"); err != nil {
			return err
		}
	}
	return nil
}
