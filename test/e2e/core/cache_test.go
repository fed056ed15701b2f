//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// cacheGoes disables the cache under load.
func cacheGoes(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	load, err := dev.client.Start(ctx, dev.customers(300))
	if err != nil {
		return err
	}
	start := time.Now()
	err = dev.change(ctx, harness.Patch{"cache": harness.Patch{"enabled": false}})
	for _, k := range []harness.Key{{Kind: "Deployment", Name: cacheName}, {Kind: "Secret", Name: cacheName}, {Kind: "Service", Name: cacheName}, {Kind: "NetworkPolicy", Name: cacheName}, {Kind: "ServiceAccount", Name: cacheName}} {
		if err != nil {
			break
		}
		err = dev.world.AwaitGone(ctx, settled, k.Kind, k.Name)
	}
	gone := time.Since(start)
	if err == nil {
		err = dev.world.Await(ctx, settled, "the backend to run without a cache", func() (bool, string) {
			c := dev.status()
			return rolledOut(dev, backendWeb) && c.Ready(), c.String()
		})
	}
	tally, lerr := load.Stop()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	n.Addf("gone after %.1fs", gone.Seconds())
	n.Addf("%s", tally)
	for _, c := range harness.Containers(dev.world.Get("Deployment", backendWeb)) {
		env, _ := c["env"].([]any)
		for _, e := range env {
			if m, _ := e.(map[string]any); m["name"] == "REDIS_URL" {
				return errors.New("the backend still has REDIS_URL")
			}
		}
	}
	if _, ok := dev.status().Component("cache"); ok {
		return errors.New("status.components still lists the cache")
	}
	if err := tally.Check(50); err != nil {
		return err
	}
	if err := acknowledged(ctx, dev, tally, n); err != nil {
		return err
	}
	id, err := dev.order(ctx, "without-a-cache-0001")
	if err != nil {
		return fmt.Errorf("without a cache: %w", err)
	}
	return dev.serves(ctx, "without-a-cache-0001", id)
}
