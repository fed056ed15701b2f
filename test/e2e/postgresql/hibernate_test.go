//go:build e2e

package postgresql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

func (d *database) hibernates(ctx context.Context, n notes) error {
	volumes := d.volumes()
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"hibernated": true}); err != nil {
		return err
	}
	err := d.world.Await(ctx, settled, "the claim to hibernate", func() (bool, string) {
		c := d.status()
		return c.Status.Phase == "Hibernated" && len(d.pods()) == 0, fmt.Sprintf("there are %d pods; %s", len(d.pods()), c)
	})
	if err != nil {
		return err
	}
	n.Addf("asleep after %.0fs", time.Since(start).Seconds())
	for name, uid := range volumes {
		if d.volumes()[name] != uid {
			return fmt.Errorf("volume %s is gone", name)
		}
	}
	start = time.Now()
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("awake after %.0fs", time.Since(start).Seconds())
	return nil
}

// volumes returns the UIDs of the servers' volume claims, by name.
func (d *database) volumes() map[string]string {
	out := map[string]string{}
	for _, v := range d.world.List("PersistentVolumeClaim") {
		// Leave out the temporary volumes of pods that verify a backup.
		if strings.HasPrefix(v.GetName(), "data-") {
			out[v.GetName()] = string(v.GetUID())
		}
	}
	return out
}
