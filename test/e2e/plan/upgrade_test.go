//go:build e2e

package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/types"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// upgradeNamespace is the namespace of a database that waits for its window.
const upgradeNamespace = "e2e-plan-upgrade"

func upgrades() types.Feature {
	g := newGround(upgradeNamespace, "plan/small.yaml", "DatabaseCluster", "orders")
	return tests.Feature("maintenance windows", g.namespace).
		Full("settings that replace pods wait for the window, and go back without a restart", g.waitsForWindow).
		Full("what waits is applied once it is asked for", g.upgradesNow).
		Cleared().
		Feature()
}

// mirrored returns settings with another registry for Storeplane's images and with a window that is
// closed.
func mirrored() map[string]any {
	window := map[string]any{"start": time.Now().UTC().Add(12 * time.Hour).Format("15:04"), "hours": int64(1)}
	return map[string]any{
		"imageRegistry": mirror(),
		"maintenance":   map[string]any{"development": window, "staging": window, "production": window},
	}
}

func mirror() string { return cluster.Registry + "/e2e-mirror" }

// uids returns the UIDs and numbers of restarts of the claim's pods, by name.
func (g *ground) uids() map[string]string {
	out := map[string]string{}
	for _, p := range g.world.List("Pod") {
		if workloadOf(p.GetLabels(), harness.Field(p, "metadata", "generateName")) != "" {
			out[p.GetName()] = string(p.GetUID()) + restarts(p.Object)
		}
	}
	return out
}

func (g *ground) awaitUpgraded(ctx context.Context, status, reason string) error {
	what := fmt.Sprintf("%s %s to have %s %s, %s", g.kind, g.name, appsv1.TypeUpgraded, status, reason)
	return g.world.Await(ctx, started, what, func() (bool, string) {
		for _, c := range conditions(g.world.Get(g.kind, g.name)) {
			if c["type"] == appsv1.TypeUpgraded {
				return c["status"] == status && c["reason"] == reason, fmt.Sprint(c)
			}
		}
		return false, "there is no such condition"
	})
}

func conditions(u *unstructured.Unstructured) []map[string]any {
	list, _ := harness.List(u, "status", "conditions")
	return list
}

// waitsForWindow changes the registry of Storeplane's images outside of the window.
func (g *ground) waitsForWindow(ctx context.Context, n notes) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	before := g.uids()
	same := func() (bool, string) {
		if after := g.uids(); !maps.Equal(before, after) {
			return false, fmt.Sprintf("the pods were %v, are %v", before, after)
		}
		return g.isAtRest()
	}
	// Settings that pods could depend on, but not those of this claim: it is upgraded at once.
	release := harness.Field(g.world.Get(g.kind, g.name), "status", "release")
	unrelated := mirrored()
	delete(unrelated, "imageRegistry")
	unrelated["backup"] = map[string]any{"type": "volume"}
	err := cluster.WithSettings(ctx, unrelated, func() error {
		return g.world.Await(ctx, started, "another release that changes no pods", func() (bool, string) {
			status, _ := g.world.Get(g.kind, g.name).Object["status"].(map[string]any)
			is, waits := fmt.Sprint(status["release"]), status["pendingRelease"]
			if ok, instead := same(); !ok {
				return false, instead
			}
			return is != release && waits == nil, fmt.Sprintf("release %s, waits for %v", is, waits)
		})
	})
	if err != nil {
		return err
	}
	err = cluster.WithSettings(ctx, mirrored(), func() error {
		if err := g.awaitUpgraded(ctx, "False", "AwaitingMaintenance"); err != nil {
			return err
		}
		n.Addf("waits for %s", harness.Field(g.world.Get(g.kind, g.name), "status", "pendingRelease"))
		return g.world.Hold(ctx, settled, "its pods stay, and it is Ready", same)
	})
	if err = errors.Join(err, g.awaitUpgraded(ctx, "True", "Upgraded")); err != nil {
		return err
	}
	return g.world.Hold(ctx, settled, "its pods stay once the settings are back", same)
}

// upgradesNow makes the database run the images of the other registry, by an annotation.
func (g *ground) upgradesNow(ctx context.Context, n notes) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.copyImages(mirror()); err != nil {
		return err
	}
	began := time.Now()
	err := cluster.WithSettings(ctx, mirrored(), func() error {
		if err := g.awaitUpgraded(ctx, "False", "AwaitingMaintenance"); err != nil {
			return err
		}
		release := harness.Field(g.world.Get(g.kind, g.name), "status", "pendingRelease")
		if _, err := cluster.Patch(ctx, g.kind, g.namespace, g.name, harness.Patch{"metadata": map[string]any{"annotations": map[string]any{compose.UpgradeAnnotation: release}}}); err != nil {
			return err
		}
		err := g.world.Await(ctx, started, "all pods to run images of "+mirror(), func() (bool, string) { return g.runs(mirror()) })
		n.Addf("upgraded %.0f s after it was asked for", time.Since(began).Seconds())
		return errors.Join(err, g.awaitUpgraded(ctx, "True", "Upgraded"))
	})
	if err != nil {
		return err
	}
	// Without a window the change back is applied at once.
	return g.awaitOwnImages(ctx)
}

// runs reports whether all pods of the claim run images of a registry, and the claim is at rest.
func (g *ground) runs(registry string) (bool, string) {
	for image := range g.images() {
		if !strings.HasPrefix(image, registry+"/") {
			return false, "one runs " + image
		}
	}
	return g.isAtRest()
}

// copyImages copies the images of the claim's pods to another registry.
func (g *ground) copyImages(to string) error {
	for image := range g.images() {
		name := strings.Replace(image, cluster.Registry, to, 1)
		if err := crane.Copy(image, name, crane.Insecure); err != nil {
			return fmt.Errorf("cannot copy image %s to %s: %w", image, name, err)
		}
	}
	return nil
}

// awaitOwnImages waits until no pod runs an image of the other registry.
func (g *ground) awaitOwnImages(ctx context.Context) error {
	return g.world.Await(ctx, started, "all pods to run images of "+cluster.Registry, func() (bool, string) {
		for image := range g.images() {
			if strings.HasPrefix(image, mirror()+"/") {
				return false, "one runs " + image
			}
		}
		return g.isAtRest()
	})
}

// images returns the images of the claim's pods.
func (g *ground) images() map[string]bool {
	out := map[string]bool{}
	for _, p := range g.world.List("Pod") {
		for _, c := range harness.Containers(p) {
			if image, ok := c["image"].(string); ok {
				out[image] = true
			}
		}
	}
	return out
}
