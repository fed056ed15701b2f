//go:build e2e

package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"

	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

const (
	// canaryNamespace is the namespace that upgrades reach first.
	canaryNamespace = "e2e-upgrade-canary"

	// wavePause is the pause after that.
	wavePause = 15 * time.Second

	brokenFolder = "_out/broken"
)

// brokenImages is the registry of the broken release's images.
func brokenImages() string { return cluster.Registry + "-broken" }

// buildBroken gives the broken release its images: under each name is Redis, so that no other program
// starts.
func buildBroken() error {
	data, err := os.ReadFile(filepath.Join(root, "_out", "packages", "images.json"))
	if err != nil {
		return fmt.Errorf("cannot read the images of this release: %w", err)
	}
	var this images.Release
	if err := json.Unmarshal(data, &this); err != nil {
		return fmt.Errorf("cannot read the images of this release: %w", err)
	}
	for name := range this.Digests {
		if err := crane.Copy(cluster.Registry+"/redis:8", brokenImages()+"/"+name, crane.Insecure); err != nil {
			return fmt.Errorf("cannot copy an image to %s: %w", name, err)
		}
	}
	return nil
}

// installBroken installs a release whose servers cannot start.
func installBroken() error {
	_, err := run("make", "install", "REGISTRY="+cluster.Registry, "IMAGES="+brokenImages(), "VERSION=v0.0.2", "OUT="+brokenFolder)
	return err
}

// contains installs a release whose servers cannot start, in two waves: it reaches the first one, and
// no server beyond. This release then brings the first wave back.
func (g *ground) contains(ctx context.Context, n notes) error {
	canary, err := g.startCanary(ctx)
	if err != nil {
		return err
	}
	if err := buildBroken(); err != nil {
		return err
	}
	waves := map[string]any{"upgrades": map[string]any{"waves": []any{map[string]any{
		"name": "canaries", "pause": wavePause.String(),
		"namespaces": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": canaryNamespace}},
	}}}}
	before := g.pods("orders")
	same := func() (bool, string) {
		now := g.pods("orders")
		return maps.Equal(before, now), fmt.Sprintf("the pods were %v, are %v", before, now)
	}
	began := time.Now()
	breaks := func() error {
		if err := errors.Join(installBroken(), g.compose(ctx), canary.compose(ctx)); err != nil {
			return err
		}
		err := canary.world.Await(ctx, started, "the canary to be Degraded, since its server cannot start", func() (bool, string) {
			c := canary.world.Claim("DatabaseCluster", "orders")
			return c.Status.Phase == "Degraded" && strings.Contains(c.Status.Message, "cannot start container"), c.String()
		})
		if err != nil {
			return err
		}
		n.Addf("the canary was Degraded %.0f s after the broken release was begun to be installed: %s", time.Since(began).Seconds(), canary.world.Claim("DatabaseCluster", "orders").Status.Message)
		err = g.world.Await(ctx, started, "the other database to wait for its wave", func() (bool, string) {
			is := g.upgraded("DatabaseCluster", "orders")
			return is["status"] == "False" && is["reason"] == "AwaitingWave", fmt.Sprint(is)
		})
		if err != nil {
			return err
		}
		return g.world.Hold(ctx, wavePause+settled, "no other server is replaced, after the pause too", same)
	}
	// The waves are still in force.
	this := g.images("orders")
	goesBack := func() error {
		if err := errors.Join(installThis(false), canary.compose(ctx)); err != nil {
			return err
		}
		return canary.world.Await(ctx, started, "the canary to run this release's image", func() (bool, string) {
			return canary.runs("orders", func(image string) bool { return slices.Contains(this, image) })
		})
	}
	err = cluster.WithSettings(ctx, waves, func() error {
		return g.change(ctx, n, func() error { return errors.Join(breaks(), goesBack()) }, g.isThis, g.runs)
	})
	if err != nil {
		return err
	}
	if ok, instead := same(); !ok {
		return errors.New(instead)
	}
	return nil
}

// startCanary creates a small database in the first wave.
func (g *ground) startCanary(ctx context.Context) (*ground, error) {
	if err := cluster.CreateNamespace(ctx, canaryNamespace); err != nil {
		return nil, err
	}
	world, err := cluster.Watch(ctx, canaryNamespace)
	if err != nil {
		return nil, err
	}
	u, err := manifests.Read("plan/small.yaml", map[string]string{"NAMESPACE": canaryNamespace})
	if err != nil {
		return nil, err
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return nil, err
	}
	return &ground{world: world}, world.AwaitReady(ctx, started, "DatabaseCluster", "orders")
}
