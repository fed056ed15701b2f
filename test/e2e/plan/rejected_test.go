//go:build e2e

package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// isRejected returns a check that a plan shows which objects of an edit the API server would
// refuse: here a quota that permits no Ingresses is exceeded.
func (g *ground) isRejected(p harness.Patch) check {
	return func(ctx context.Context, n notes) (err error) {
		if err := g.ready(ctx); err != nil {
			return err
		}
		quota := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "no-ingresses", "namespace": g.namespace},
			"spec": map[string]any{"hard": map[string]any{"count/ingresses.networking.k8s.io": "0"}},
		}}
		if _, err := cluster.Create(ctx, quota); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, cluster.Delete(context.WithoutCancel(ctx), "ResourceQuota", g.namespace, quota.GetName()))
		}()
		edited, err := cluster.Patch(ctx, g.kind, g.namespace, g.name, p, "All")
		if err != nil {
			return err
		}
		var got *plan.Claim
		// The quota is enforced once its controller has observed it.
		err = g.world.Await(ctx, started, "the quota to be enforced", func() (bool, string) {
			if got, err = g.plan(ctx, asFile(edited)); err != nil {
				return false, err.Error()
			}
			return len(got.Rejected) > 0, fmt.Sprintf("the plan is %s", got.Verdict)
		})
		if err != nil {
			return err
		}
		r := got.Rejected[0]
		if got.Verdict != plan.Refused || len(got.Rejected) != 1 || r.Object.Kind != "Ingress" || !strings.Contains(r.Message, "exceeded quota: no-ingresses") {
			return fmt.Errorf("want the Ingress refused by the quota, got %s: %v", got.Verdict, got.Rejected)
		}
		n.Addf("%s", r.Message)
		if g.world.Get("Ingress", r.Object.Name) != nil {
			return errors.New("the dry run has stored the Ingress")
		}
		return g.isTriedRarely(ctx, p)
	}
}

// isTriedRarely applies the edit. The object that the quota refuses is tried again after some
// seconds, and not in each pass, which would open Crossplane's circuit breaker. Then it takes the
// edit back.
func (g *ground) isTriedRarely(ctx context.Context, p harness.Patch) (err error) {
	if _, err := cluster.Patch(ctx, g.kind, g.namespace, g.name, p); err != nil {
		return err
	}
	defer func() {
		_, undone := cluster.Patch(context.WithoutCancel(ctx), g.kind, g.namespace, g.name, spec("ingress", nil))
		err = errors.Join(err, undone)
	}()
	err = g.world.Await(ctx, started, "the Ingress to be tried again", func() (bool, string) {
		u := g.world.Get(g.kind, g.name)
		if u == nil {
			return false, "there is no claim"
		}
		refusal, _, _ := unstructured.NestedStringMap(u.Object, "status", "refusal")
		return strings.Contains(refusal["message"], "no-ingresses") && refusal["lastTime"] > refusal["firstTime"], fmt.Sprint(refusal)
	})
	return errors.Join(err, g.world.NeverFalse("Responsive"))
}
