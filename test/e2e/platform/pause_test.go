//go:build e2e

package platform

import (
	"context"
	"errors"
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// small is an EcommercePlatform for development.
var small = &shop{namespace: suiteName + "-small", name: "store", file: filed("platform/store.yaml")}

func pausing() types.Feature {
	return tests.Feature("a shop that is paused", small.namespace).
		Full("what is edited below a paused shop stays, and is put back when it goes on", pauses).
		Feature()
}

const paused = "crossplane.io/paused"

// looks is how long an edit must stay: Crossplane calls the function every minute, and at once when
// an object that it watches has changed.
const looks = 75 * time.Second

func pauses(ctx context.Context, n notes) error {
	if err := small.ready(ctx); err != nil {
		return err
	}
	backend, frontend := small.part("backend-web"), small.part("frontend-web")
	start := time.Now()
	if err := small.pause(ctx, "true"); err != nil {
		return err
	}
	err := small.world.Await(ctx, soon, "the shop's parts to be paused", func() (bool, string) {
		for _, k := range small.parts() {
			// An object that is only annotated may still be reconciled once with the older state in
			// a controller's cache.
			u := small.world.Get(k.Kind, k.Name)
			if synced := harness.ClaimOf(u).Condition("Synced"); u.GetAnnotations()[paused] != "true" || synced.Reason != string(xpv2.ReasonReconcilePaused) {
				return false, k.String() + " is not: Synced says " + synced.Reason
			}
		}
		return true, ""
	})
	n.Addf("paused after %.1fs", time.Since(start).Seconds())

	if err == nil {
		err = small.edit(ctx, backend, frontend)
	}
	if err == nil {
		err = small.world.Hold(ctx, looks, "what was edited stays", func() (bool, string) {
			if small.world.Get("Service", frontend) != nil {
				return false, "Service " + frontend + " is back"
			}
			have := harness.Number(small.world.Get("Deployment", backend), "spec", "replicas")
			return have == 2, fmt.Sprintf("Deployment %s is to have %d pods", backend, have)
		})
	}
	start = time.Now()
	resumed := small.pause(ctx, nil)
	if err := errors.Join(err, resumed); err != nil {
		return err
	}
	err = small.world.Await(ctx, settled, "what was edited to be put back", func() (bool, string) {
		if small.world.Get("Service", frontend) == nil {
			return false, "there is no Service " + frontend
		}
		have := harness.Number(small.world.Get("Deployment", backend), "spec", "replicas")
		return have == 1, fmt.Sprintf("Deployment %s is to have %d pods", backend, have)
	})
	n.Addf("put back after %.1fs", time.Since(start).Seconds())
	for _, k := range small.parts() {
		if v, ok := small.world.Get(k.Kind, k.Name).GetAnnotations()[paused]; ok && err == nil {
			err = small.world.Await(ctx, soon, k.String()+" to go on", func() (bool, string) {
				_, still := small.world.Get(k.Kind, k.Name).GetAnnotations()[paused]
				return !still, "it is still paused: " + v
			})
		}
	}
	return errors.Join(err, small.ready(ctx))
}

// parts returns the objects of an EcommercePlatform that are reconciled on their own: claims,
// Backups and AppConfigs.
func (s *shop) parts() []harness.Key {
	var out []harness.Key
	for _, kind := range []string{"DatabaseCluster", "WebApp", "Backup", "AppConfig"} {
		for _, u := range s.world.List(kind) {
			out = append(out, harness.KeyOf(u))
		}
	}
	return out
}

// pause pauses the claim, or resumes it if value is nil. The generation does not change.
func (s *shop) pause(ctx context.Context, value any) error {
	_, err := cluster.Patch(ctx, "EcommercePlatform", s.namespace, s.name, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{paused: value}}})
	return err
}

// edit deletes a Service and doubles the replicas of a Deployment by hand.
func (s *shop) edit(ctx context.Context, backend, frontend string) error {
	if err := cluster.Delete(ctx, "Service", s.namespace, frontend); err != nil {
		return err
	}
	u, err := cluster.Patch(ctx, "Deployment", s.namespace, backend, harness.Patch{"spec": harness.Patch{"replicas": 2}})
	if err != nil {
		return err
	}
	return errors.Join(s.world.AwaitSeen(ctx, u), s.world.AwaitGone(ctx, soon, "Service", frontend))
}
