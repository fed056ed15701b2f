//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	// diskMiB is the size of each server's disk: far larger than the database, and small for the node.
	diskMiB = 2000

	// diskFullFor is how long a disk is full.
	diskFullFor = 20 * time.Second

	// whenFull is the longest pause of writes while the primary's disk becomes full.
	whenFull = 10 * time.Second
)

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
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	return d.ready(ctx)
}

// sleeps hibernates the database and waits until no pod uses a volume.
func (d *database) sleeps(ctx context.Context) error {
	if err := d.change(ctx, harness.Patch{"hibernated": true}); err != nil {
		return err
	}
	return d.world.Await(ctx, settled, "all servers to stop", func() (bool, string) {
		return len(d.pods()) == 0, fmt.Sprintf("%d run", len(d.pods()))
	})
}

// server returns the name of a server's pod.
func server(n int) string { return fmt.Sprintf("%s-%d", setName, n) }

// fillsPrimary fills the disk of the primary, fillsReplica that of a replica, and fillsAny one at random.
func (d *database) fillsPrimary(ctx context.Context, n notes) error {
	return d.fillsDisk(ctx, n, d.primary())
}

func (d *database) fillsReplica(ctx context.Context, n notes) error {
	return d.fillsDisk(ctx, n, d.with("replica")[0])
}

func (d *database) fillsAny(ctx context.Context, n notes, draw *rand.Rand) error {
	pods := d.pods()
	return d.fillsDisk(ctx, n, pods[draw.IntN(len(pods))])
}

// fillsDisk fills the disk of a server for a time: it leaves the group, another one takes the writes, and the claim
// names the volume.
func (d *database) fillsDisk(ctx context.Context, n notes, pod *unstructured.Unstructured) (err error) {
	path, err := cluster.VolumePath(ctx, d.namespace, "data-"+pod.GetName())
	if err != nil {
		return unlessNode(err)
	}
	start := time.Now()
	free, err := harness.Fill(path)
	if err != nil {
		return unlessNode(err)
	}
	want := "Waiting for room on volume claim data-" + pod.GetName() + ", which is full: raise storageSize"
	err = d.says(ctx, soon, want)
	n.Addf("reported after %.0fs", time.Since(start).Seconds())
	if p := d.primary(); err == nil && (p == nil || p.GetName() == pod.GetName()) {
		err = fmt.Errorf("no other server leads than %s: %s", pod.GetName(), d.status())
	}
	if err == nil {
		err = harness.Until(ctx, time.Now().Add(diskFullFor))
	}
	start = time.Now()
	if err = errors.Join(err, free()); err != nil {
		return err
	}
	err = d.whole(ctx, baseSize)
	n.Addf("back %.0fs after there was room", time.Since(start).Seconds())
	return err
}

// says waits until the claim says something.
func (d *database) says(ctx context.Context, within time.Duration, want string) error {
	return d.world.Await(ctx, within, fmt.Sprintf("the claim to report %q", want), func() (bool, string) {
		is := d.status().String()
		return strings.Contains(is, want), is
	})
}
