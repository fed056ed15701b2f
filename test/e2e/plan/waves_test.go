//go:build e2e

package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"
)

// Namespaces of two databases. The first wave selects the first namespace.
const (
	canaryNamespace = "e2e-plan-canary"
	otherNamespace  = "e2e-plan-wave"
)

// wavePause is the pause between the two waves.
const wavePause = 15 * time.Second

// fleet is two databases that are upgraded in waves.
type fleet struct{ canary, other *ground }

func inWaves() types.Feature {
	f := fleet{newGround(canaryNamespace, "plan/small.yaml", "DatabaseCluster", "orders"), newGround(otherNamespace, "plan/small.yaml", "DatabaseCluster", "orders")}
	return tests.Feature("waves", canaryNamespace, otherNamespace).
		Full("settings that break a claim halt after its wave, and go back without a restart of others", f.halts).
		Full("settings reach the next wave after the pause", f.goesOn).
		Cleared().
		Feature()
}

// waved returns settings with a registry for Storeplane's images that reach the canaries first.
func waved(registry string) map[string]any {
	return map[string]any{
		"imageRegistry": registry,
		"upgrades": map[string]any{"waves": []any{map[string]any{
			"name": "canaries", "pause": wavePause.String(),
			"namespaces": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": canaryNamespace}},
		}}},
	}
}

func (f fleet) ready(ctx context.Context) error {
	return errors.Join(f.canary.ready(ctx), f.other.ready(ctx))
}

// halts sets a registry without images.
func (f fleet) halts(ctx context.Context, n notes) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	before := f.other.uids()
	same := func() (bool, string) {
		if after := f.other.uids(); !maps.Equal(before, after) {
			return false, fmt.Sprintf("the pods were %v, are %v", before, after)
		}
		return f.other.isAtRest()
	}
	began := time.Now()
	err := cluster.WithSettings(ctx, waved(cluster.Registry+"/e2e-absent"), func() error {
		err := f.canary.world.Await(ctx, started, "the canary to say that its image cannot be pulled", func() (bool, string) {
			c := f.canary.world.Claim(f.canary.kind, f.canary.name)
			return c.Status.Phase == "Degraded" && strings.Contains(c.Status.Message, "e2e-absent"), c.String()
		})
		if err != nil {
			return err
		}
		n.Addf("the canary was Degraded %.0f s after the settings were changed", time.Since(began).Seconds())
		if err := f.other.awaitUpgraded(ctx, "False", "AwaitingWave"); err != nil {
			return err
		}
		return f.other.world.Hold(ctx, wavePause+settled, "the other one runs as before, after the pause too", same)
	})
	if err = errors.Join(err, f.canary.rests(ctx), f.other.awaitUpgraded(ctx, "True", "Upgraded")); err != nil {
		return err
	}
	return f.other.world.Hold(ctx, settled, "the other one runs as before once the settings are back", same)
}

// goesOn sets a registry with all images.
func (f fleet) goesOn(ctx context.Context, n notes) error {
	if err := f.ready(ctx); err != nil {
		return err
	}
	if err := f.canary.copyImages(mirror()); err != nil {
		return err
	}
	before := f.other.uids()
	err := cluster.WithSettings(ctx, waved(mirror()), func() error {
		err := f.canary.world.Await(ctx, started, "the canary to run images of "+mirror(), func() (bool, string) { return f.canary.runs(mirror()) })
		if err != nil {
			return err
		}
		upgraded := time.Now()
		// The canary became Ready a moment before this was observed.
		pause := wavePause - 2*time.Second
		err = f.other.world.Hold(ctx, pause, "the other one runs as before while the wave pauses", func() (bool, string) {
			return maps.Equal(before, f.other.uids()), fmt.Sprintf("the pods were %v, are %v", before, f.other.uids())
		})
		if err != nil {
			return err
		}
		err = f.other.world.Await(ctx, started, "the other one to run images of "+mirror(), func() (bool, string) { return f.other.runs(mirror()) })
		n.Addf("the second wave was done %.0f s after the first", time.Since(upgraded).Seconds())
		return errors.Join(err, f.other.awaitUpgraded(ctx, "True", "Upgraded"))
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range []*ground{f.canary, f.other} {
		errs = append(errs, g.awaitOwnImages(ctx))
	}
	return errors.Join(errs...)
}
