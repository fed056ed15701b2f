//go:build e2e

package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// Timeouts.
const (
	started = 5 * time.Minute
	// settled is how long nothing must happen once an edit has had its effect. It is longer than
	// instance managers take to notice that a server needs a restart.
	settled = 12 * time.Second
)

// ground is a claim that is edited, with a watch of its namespace.
type ground struct {
	namespace, file, kind, name string

	world *harness.World
	once  suite.Once
}

func newGround(namespace, file, kind, name string) *ground {
	return &ground{namespace: namespace, file: file, kind: kind, name: name, once: suite.Once{}}
}

func (g *ground) ready(ctx context.Context) error {
	err := g.once.Do("ground", func() error {
		if err := cluster.CreateNamespace(ctx, g.namespace); err != nil {
			return err
		}
		var err error
		if g.world, err = cluster.Watch(ctx, g.namespace); err != nil {
			return err
		}
		u, err := manifests.Read(g.file, map[string]string{"NAMESPACE": g.namespace, "REGISTRY": cluster.Registry})
		if err != nil {
			return err
		}
		if u, err = cluster.Create(ctx, u); err != nil {
			return err
		}
		return g.world.AwaitSeen(ctx, u)
	})
	if err != nil {
		return err
	}
	return g.rests(ctx)
}

// rests waits until the claim is Ready, or Hibernated, with all pods ready, and stays so for
// settled.
func (g *ground) rests(ctx context.Context) error {
	for {
		err := g.world.Await(ctx, started, g.kind+" "+g.name+" to rest", g.isAtRest)
		if err != nil {
			return err
		}
		if g.world.Hold(ctx, settled, g.kind+" "+g.name+" rests", g.isAtRest) == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (g *ground) isAtRest() (bool, string) {
	c := g.world.Claim(g.kind, g.name)
	hibernated := c.Status.Phase == "Hibernated" && c.Status.ObservedGeneration == c.Metadata.Generation
	if !c.Ready() && !hibernated {
		return false, c.String()
	}
	for _, p := range g.world.List("Pod") {
		if harness.Field(p, "status", "phase") == "Succeeded" {
			continue
		}
		if p.GetDeletionTimestamp() != nil || !ready(p) {
			return false, "pod " + p.GetName() + " is not ready"
		}
	}
	return true, ""
}

func ready(pod *unstructured.Unstructured) bool {
	list, _ := harness.List(pod, "status", "conditions")
	return slices.ContainsFunc(list, func(c map[string]any) bool { return c["type"] == "Ready" && c["status"] == "True" })
}

// plan plans the claim with the rights of the user who runs the suite.
func (g *ground) plan(ctx context.Context, claim *unstructured.Unstructured) (*plan.Claim, error) {
	live, err := state.NewLive(cluster.Config)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(live)
	if err != nil {
		return nil, err
	}
	p.DryRun = live.DryRun
	p.Replace = true // The edits are merge patches, which remove fields by null.
	return p.Plan(ctx, claim)
}

// isUnchanged checks that a plan of the unchanged claim contains no changes and no drift.
func (g *ground) isUnchanged(ctx context.Context, _ notes) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	got, err := g.plan(ctx, asFile(g.world.Get(g.kind, g.name)))
	if err != nil {
		return err
	}
	if len(got.Changes)+len(got.Drift) > 0 {
		b := &strings.Builder{}
		_ = plan.NewReport([]plan.Claim{*got}).Text(b, true)
		return fmt.Errorf("want a plan without changes, got:\n%s", b)
	}
	return nil
}

// asFile returns a claim as it would be in a file: without what the cluster adds.
func asFile(claim *unstructured.Unstructured) *unstructured.Unstructured {
	u := claim.DeepCopy()
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(u.Object, "spec", "crossplane")
	return u
}

// comesTrue returns a check that an edit does what its plan says.
func (g *ground) comesTrue(p harness.Patch) check {
	return func(ctx context.Context, n notes) error {
		if err := g.ready(ctx); err != nil {
			return err
		}
		p := withRegistry(p).(harness.Patch)
		edited, err := cluster.Patch(ctx, g.kind, g.namespace, g.name, p, "All")
		if err != nil {
			return err
		}
		planned, err := g.plan(ctx, asFile(edited))
		if err != nil {
			return err
		}
		if planned.Refusal != "" {
			return fmt.Errorf("the plan refuses the edit: %s", planned.Refusal)
		}
		if len(planned.Rejected) > 0 {
			return fmt.Errorf("the API server refuses in a dry run what it accepts: %v", planned.Rejected)
		}
		before, err := g.look(ctx)
		if err != nil {
			return err
		}
		u, err := cluster.Patch(ctx, g.kind, g.namespace, g.name, p)
		if err != nil {
			return err
		}
		if err := g.world.AwaitSeen(ctx, u); err != nil {
			return err
		}
		if err := g.rests(ctx); err != nil {
			return err
		}
		after, err := g.look(ctx)
		if err != nil {
			return err
		}
		happened := before.until(after)
		n.Addf("planned %s; happened %s", words(saidOf(planned)), words(happened))
		return compare(planned, happened)
	}
}

func words(set map[string]int) string {
	if len(set) == 0 {
		return "nothing"
	}
	var out []string
	for _, what := range slices.Sorted(maps.Keys(set)) {
		out = append(out, fmt.Sprintf("%d %s", set[what], what))
	}
	return strings.Join(out, ", ")
}

// compare compares a plan with what happened: everything that happened must be planned, and
// everything that was planned with certainty must have happened.
func compare(planned *plan.Claim, happened map[string]int) error {
	said := saidOf(planned)
	var errs []error
	for what, n := range happened {
		if said[what] == 0 && unknownOf(planned)[what] == 0 {
			errs = append(errs, fmt.Errorf("%d %s was not said", n, what))
		}
	}
	for what, n := range said {
		if happened[what] != n {
			errs = append(errs, fmt.Errorf("%d %s was said, and %d happened", n, what, happened[what]))
		}
	}
	if len(errs) > 0 {
		b := &strings.Builder{}
		_ = plan.NewReport([]plan.Claim{*planned}).Text(b, true)
		errs = append(errs, errors.New("the plan:\n"+b.String()))
	}
	return errors.Join(errs...)
}

func saidOf(planned *plan.Claim) map[string]int { return claimed(planned, false) }

func unknownOf(planned *plan.Claim) map[string]int { return claimed(planned, true) }

// claimed returns what the effects of a plan amount to, in the terms of look: how many pods of
// which workloads end, which primaries change, which volumes grow. unknown selects the effects that
// the plan is not certain of.
func claimed(planned *plan.Claim, unknown bool) map[string]int {
	out := map[string]int{}
	for _, e := range planned.Effects {
		if e.Unknown != unknown {
			continue
		}
		// The servers' ConfigMap has the same name as their StatefulSet.
		workload := strings.Replace(e.Object.String(), "ConfigMap ", "StatefulSet ", 1)
		switch {
		case e.Verb == plan.SwitchesOver:
			out["switchover of "+workload] = 1
		case e.Verb == plan.Grows:
			out["growth of "+workload] = 1
		case e.Pods > 0 || unknown && e.Verb == plan.Restarts:
			out["end of pods of "+workload] += max(e.Pods, 1)
		}
	}
	return out
}

// withRegistry completes the images in a patch.
func withRegistry(v any) any {
	switch x := v.(type) {
	case registry:
		return cluster.Registry + "/" + string(x)
	case harness.Patch:
		out := harness.Patch{}
		for k, f := range x {
			out[k] = withRegistry(f)
		}
		return out
	}
	return v
}
