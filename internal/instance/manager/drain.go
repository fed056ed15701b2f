package manager

import (
	"context"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

const (
	// drainWithin is how long a primary that hands over waits for WAL to be archived. Writes
	// continue meanwhile, and the next primary archives what is left.
	drainWithin = 15 * time.Second

	// stalledFor is how long nothing may be archived before the store counts as unreachable.
	stalledFor = 3 * time.Second
)

// drain waits until no WAL waits to be archived, as long as segments are being archived. It
// reports whether none waits.
func drain(ctx context.Context, archiver func(context.Context) (postgres.Archiver, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, drainWithin)
	defer cancel()
	last, since := "", time.Now()
	for {
		s, err := archiver(ctx)
		switch {
		case err != nil:
			return false
		case s.Waiting == 0:
			return true
		case s.Last != last:
			last, since = s.Last, time.Now()
		case time.Since(since) >= stalledFor:
			return false
		}
		if !pace.Wait(ctx, pollPeriod) {
			return false
		}
	}
}
