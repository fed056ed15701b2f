//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// rolls rolls both tiers to another version under load, and back as often as the suite repeats.
func rolls(ctx context.Context, n notes) error {
	versions := []string{"v2"}
	// More at once would open the circuit breaker of the embedded cluster, and with that slow later checks.
	for range min(repeats(), 3) - 1 {
		versions = append(versions, "v1", "v2")
	}
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	load, err := dev.client.Start(ctx, dev.customers(300*len(versions)))
	if err != nil {
		return err
	}
	for _, v := range versions {
		if err = roll(ctx, v, n); err != nil {
			break
		}
	}
	tally, lerr := load.Stop()
	if err := errors.Join(err, lerr); err != nil {
		return err
	}
	n.Addf("%s", tally)
	if err := tally.Check(200 * len(versions)); err != nil {
		return err
	}
	return acknowledged(ctx, dev, tally, n)
}

// roll rolls to a version and waits until no pod of another one runs. That opens no circuit breaker which was
// closed, with its bucket full.
func roll(ctx context.Context, version string, n notes) error {
	full, err := cluster.FillBucket(ctx, "EcommercePlatform")
	if err != nil {
		return err
	}
	defer full.End()
	err = dev.change(ctx, harness.Patch{
		"backend":  harness.Patch{"image": image("backend", version)},
		"frontend": harness.Patch{"image": image("frontend", version)},
	})
	if err != nil {
		return err
	}
	err = dev.world.Await(ctx, settled, "both tiers to run "+version, func() (bool, string) {
		for _, tier := range []string{"backend", "frontend"} {
			name := claimName + "-" + tier + "-web"
			if have := harness.Image(dev.world.Get("Deployment", name)); have != image(tier, version) {
				return false, name + " is to run " + have
			}
			if !rolledOut(dev, name) {
				return false, name + " has not rolled out"
			}
			for _, p := range dev.world.List("Pod") {
				if strings.HasPrefix(p.GetName(), name) && harness.Image(p) != image(tier, version) {
					return false, "old pod " + p.GetName() + " is still there"
				}
			}
		}
		return true, ""
	})
	if err != nil {
		return fmt.Errorf("%w (%s)", err, dev.status())
	}
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	return checkBucket(n, full)
}

// configRolls: what the claim configures reaches the pods of the backend.
func configRolls(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	full, err := cluster.FillBucket(ctx, "EcommercePlatform")
	if err != nil {
		return err
	}
	defer full.End()
	start := time.Now()
	pods := func() map[string]bool {
		out := map[string]bool{}
		for _, p := range dev.world.List("Pod") {
			if strings.HasPrefix(p.GetName(), backendWeb) && p.GetDeletionTimestamp() == nil {
				out[string(p.GetUID())] = true
			}
		}
		return out
	}
	before := pods()
	if err := dev.change(ctx, harness.Patch{"config": harness.Patch{"LOG_LEVEL": "debug"}}); err != nil {
		return err
	}
	err = dev.world.Await(ctx, settled, "the pods of the backend to be replaced", func() (bool, string) {
		now := pods()
		for uid := range now {
			if before[uid] {
				return false, "a pod of before still runs"
			}
		}
		return len(now) > 0 && rolledOut(dev, backendWeb) && dev.status().Ready(), dev.status().String()
	})
	if err != nil {
		return err
	}
	n.Addf("rolled out after %.1fs", time.Since(start).Seconds())
	return checkBucket(n, full)
}

// acknowledged checks that all acknowledged orders are in the database.
func acknowledged(ctx context.Context, s *shop, t harness.Tally, n notes) error {
	if len(t.Orders) == 0 {
		return errors.New("the load placed no order")
	}
	have, err := s.rows(ctx, t.Orders...)
	if err != nil {
		return err
	}
	if have != len(t.Orders) {
		return fmt.Errorf("of %d acknowledged orders %d are rows in PostgreSQL", len(t.Orders), have)
	}
	n.Addf("%d orders, all rows", have)
	return nil
}

// migratedFirst checks that the migration of the new image had completed before the Deployment was
// changed to it.
func migratedFirst(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	want := image("backend", "v2")
	var rolled *harness.Version
	for _, v := range dev.world.History("Deployment", backendWeb) {
		if harness.Image(v.Object) == want {
			rolled = &v
			break
		}
	}
	if rolled == nil {
		return fmt.Errorf("Deployment %s never took image %s", backendWeb, want)
	}
	for _, k := range dev.world.Keys() {
		if k.Kind != "Job" || !strings.HasPrefix(k.Name, backendClaim+"-migration-") {
			continue
		}
		for _, v := range dev.world.History(k.Kind, k.Name) {
			if harness.Image(v.Object) != want || !harness.ClaimOf(v.Object).Is("Complete") {
				continue
			}
			older, err := resourceversion.CompareResourceVersion(v.Revision(), rolled.Revision())
			if err != nil {
				return fmt.Errorf("cannot compare revisions: %w", err)
			}
			if older >= 0 {
				return fmt.Errorf("%s completed at revision %s, after the image changed at %s", k, v.Revision(), rolled.Revision())
			}
			n.Addf("%s complete at revision %s, image changed at %s", k.Name, v.Revision(), rolled.Revision())
			return nil
		}
	}
	return fmt.Errorf("no migration of image %s ever completed", want)
}
