//go:build e2e

package core

import (
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

func scales(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	for _, replicas := range []int64{3, 1} {
		start := time.Now()
		full, err := cluster.FillBucket(ctx, "EcommercePlatform")
		if err != nil {
			return err
		}
		defer full.End()
		if err := dev.change(ctx, harness.Patch{"backend": harness.Patch{"replicas": replicas}}); err != nil {
			return err
		}
		err = dev.world.Await(ctx, settled, fmt.Sprintf("%d pods of the backend", replicas), func() (bool, string) {
			d := dev.world.Get("Deployment", backendWeb)
			have := harness.Number(d, "spec", "replicas")
			up := harness.Number(dev.world.Get("WebApp", backendClaim), "status", "availableReplicas")
			return have == replicas && up == replicas && rolledOut(dev, backendWeb), fmt.Sprintf("the Deployment asks for %d, the WebApp tells of %d", have, up)
		})
		if err != nil {
			return err
		}
		if err := dev.ready(ctx, settled); err != nil {
			return err
		}
		n.Addf("to %d %.1fs", replicas, time.Since(start).Seconds())
		if err := checkBucket(n, full); err != nil {
			return err
		}
	}
	return nil
}
