//go:build e2e

package postgresql

import (
	"context"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// scales scales to one server and up again. In a full run it also scales to five servers, and down
// while the primary is the last of them.
func (d *database) scales(ctx context.Context, n notes) error {
	sizes := []int{1, baseSize}
	if tests.Full() {
		sizes = append(sizes, 5, baseSize)
	}
	have := baseSize
	for _, size := range sizes {
		if size < have {
			// Make a server primary that will be removed.
			if err := d.switchover(ctx, server(have-1)); err != nil {
				return err
			}
		}
		start := time.Now()
		if err := d.change(ctx, harness.Patch{"size": size}); err != nil {
			return err
		}
		if err := d.whole(ctx, size); err != nil {
			return err
		}
		n.Addf("%d to %d in %.0fs", have, size, time.Since(start).Seconds())
		have = size
	}
	return nil
}
