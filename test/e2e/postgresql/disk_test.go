//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// diskFullFor is how long the disk of a primary is full.
const diskFullFor = 15 * time.Second

// losesDisk fills the disk of the primary and frees it again.
func (d *database) losesDisk(ctx context.Context, _ notes, _ *rand.Rand) error {
	primary := d.primary()
	path, err := cluster.VolumePath(ctx, d.namespace, "data-"+primary.GetName())
	if err != nil {
		return unlessNode(err)
	}
	free, err := harness.Fill(path)
	if err != nil {
		return unlessNode(err)
	}
	// Switching the log needs space for the next segment.
	full := time.Now().Add(diskFullFor)
	for time.Now().Before(full) && err == nil {
		if _, err = d.sql(ctx, primary.GetName(), "postgres", "CHECKPOINT; SELECT pg_switch_wal()"); err == nil {
			err = harness.Until(ctx, time.Now().Add(500*time.Millisecond))
		}
	}
	if err == nil {
		return errors.Join(fmt.Errorf("in %s the full disk held up no write", diskFullFor), free())
	}
	return errors.Join(harness.Until(ctx, full), free())
}

// diskMiB is the size of each server's disk in a soak: far larger than the database, and small for
// the node.
const diskMiB = 1500

// hasSmallDisks moves each server's volume to a disk of its own, which can be filled.
func (d *database) hasSmallDisks(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if err := d.sleeps(ctx); err != nil {
		return err
	}
	for i := range baseSize {
		path, err := cluster.VolumePath(ctx, d.namespace, "data-"+server(i))
		if err != nil {
			return unlessNode(err)
		}
		if err := harness.Shrink(ctx, path, diskMiB); err != nil {
			return unlessNode(err)
		}
	}
	n.Addf("%d disks of %d MiB", baseSize, diskMiB)
	return d.ready(ctx)
}

// sleeps hibernates the database and waits until no pod uses a volume.
func (d *database) sleeps(ctx context.Context) error {
	if err := d.change(ctx, harness.Patch{"hibernated": true}); err != nil {
		return err
	}
	return d.world.Await(ctx, settled, "all servers to stop", func() (bool, string) {
		return len(d.pods()) == 0, fmt.Sprintf("there are %d pods", len(d.pods()))
	})
}
