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

// losesDisk of the primary: nothing more fits on its volume, until it does again.
func (d *database) losesDisk(ctx context.Context, _ *rand.Rand) error {
	primary := d.primary()
	path, err := cluster.VolumePath(ctx, d.namespace, "data-"+primary.GetName())
	if err != nil {
		return err
	}
	free, err := harness.Fill(path)
	if err != nil {
		return unlessNode(err)
	}
	// A log that is switched wants room for its next segment.
	full := time.Now().Add(diskFullFor)
	for time.Now().Before(full) && err == nil {
		if _, err = d.sql(ctx, primary.GetName(), "postgres", "CHECKPOINT; SELECT pg_switch_wal()"); err == nil {
			err = until(ctx, time.Now().Add(500*time.Millisecond))
		}
	}
	if err == nil {
		return errors.Join(fmt.Errorf("in %s the full disk held up no write", diskFullFor), free())
	}
	return errors.Join(until(ctx, full), free())
}

// diskMiB of each server in a soak: far more than the database, and nothing to the node.
const diskMiB = 1500

// hasSmallDisks moves each server's volume to a disk of its own, which can be filled.
func (d *database) hasSmallDisks(ctx context.Context, n notes) error {
	if err := harness.Unshrink(); err != nil {
		return err
	}
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
		if err := harness.Shrink(path, diskMiB); err != nil {
			return unlessNode(err)
		}
	}
	n.Addf("%d disks of %d MiB", baseSize, diskMiB)
	return d.ready(ctx)
}

// sleeps waits until the database is hibernated, and no pod has a volume.
func (d *database) sleeps(ctx context.Context) error {
	if err := d.change(ctx, harness.Patch{"hibernated": true}); err != nil {
		return err
	}
	return d.world.Await(ctx, settled, "all servers to stop", func() (bool, string) {
		return len(d.pods()) == 0, fmt.Sprintf("there are %d pods", len(d.pods()))
	})
}

// losesSmallDisks removes what the soak has made of the node.
func (d *database) losesSmallDisks(ctx context.Context, _ notes) error {
	if d.world == nil {
		return harness.Unshrink()
	}
	return errors.Join(d.sleeps(ctx), cluster.Delete(ctx, "Pod", d.namespace, restorerPod), harness.Unshrink())
}
