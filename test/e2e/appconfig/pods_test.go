//go:build e2e

package appconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// podSpec returns the spec of a pod or of a pod template.
func podSpec(u *unstructured.Unstructured) corev1.PodSpec {
	spec := corev1.PodSpec{}
	if u == nil {
		return spec
	}
	path := []string{"spec", "template", "spec"}
	switch u.GetKind() {
	case "Pod":
		path = []string{"spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	if raw, ok, err := unstructured.NestedMap(u.Object, path...); ok && err == nil {
		// A spec that cannot be converted stays empty, and the checks that need it fail.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &spec)
	}
	return spec
}

// bundles returns the bundles of an application that a pod or a pod template refers to, each once,
// sorted. A pod with more than one runs parts of two configurations.
func bundles(u *unstructured.Unstructured, application string) []string {
	spec := podSpec(u)
	return slices.DeleteFunc(appconfig.References(&spec), func(name string) bool { return !appconfig.IsBundle(application, name) })
}

// podsOf returns the pods of a workload that are not being deleted.
func (g *ground) podsOf(workload string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, p := range g.world.List("Pod") {
		if strings.HasPrefix(p.GetName(), workload+"-") && p.GetDeletionTimestamp() == nil {
			out = append(out, p)
		}
	}
	return out
}

func uids(pods []*unstructured.Unstructured) []string {
	var out []string
	for _, p := range pods {
		out = append(out, string(p.GetUID()))
	}
	slices.Sort(out)
	return out
}

// runsAll reports whether a workload has rolled out and all of its pods run only this bundle.
func (g *ground) runsAll(kind, name, application, bundle string) (ok bool, instead string) {
	u := g.world.Get(kind, name)
	if have := bundles(u, application); !slices.Equal(have, []string{bundle}) {
		return false, fmt.Sprintf("%s refers to %v", name, have)
	}
	want := harness.Number(u, "spec", "replicas")
	status := func(field string) int64 { return harness.Number(u, "status", field) }
	if status("observedGeneration") < u.GetGeneration() || status("updatedReplicas") != want || status("availableReplicas") != want || status("replicas") != want {
		return false, name + " has not rolled out"
	}
	pods := g.podsOf(name)
	for _, p := range pods {
		if have := bundles(p, application); !slices.Equal(have, []string{bundle}) {
			return false, fmt.Sprintf("pod %s runs %v", p.GetName(), have)
		}
		if !harness.ClaimOf(p).Is("Ready") {
			return false, fmt.Sprintf("pod %s is not ready", p.GetName())
		}
	}
	return int64(len(pods)) == want, fmt.Sprintf("%s has %d pods", name, len(pods))
}

// awaitRuns waits until all pods of a workload run only this bundle.
func (g *ground) awaitRuns(ctx context.Context, within time.Duration, kind, name, application, bundle string) error {
	return g.world.Await(ctx, within, fmt.Sprintf("%s %s to run %s", kind, name, bundle), func() (bool, string) {
		return g.runsAll(kind, name, application, bundle)
	})
}

// torn returns an error if a pod ever referred to more than one bundle.
func (g *ground) torn(workload, application string) error {
	for _, k := range g.world.Keys() {
		if k.Kind != "Pod" || !strings.HasPrefix(k.Name, workload+"-") {
			continue
		}
		for _, v := range g.world.History(k.Kind, k.Name) {
			if have := bundles(v.Object, application); len(have) > 1 {
				return fmt.Errorf("pod %s ran %v at once", k.Name, have)
			}
		}
	}
	return nil
}

// replicaSets returns the names of a Deployment's ReplicaSets.
func (g *ground) replicaSets(ctx context.Context, name string) ([]string, error) {
	l, err := cluster.Kube.AppsV1().ReplicaSets(g.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list ReplicaSets: %w", err)
	}
	var out []string
	for i := range l.Items {
		if o := metav1.GetControllerOf(&l.Items[i]); o != nil && o.Name == name {
			out = append(out, l.Items[i].Name)
		}
	}
	return out, nil
}

// newOf returns those of now that are not in before.
func newOf(before, now []string) []string {
	return slices.DeleteFunc(slices.Clone(now), func(n string) bool { return slices.Contains(before, n) })
}

// leastAvailable returns the smallest number of available pods in the versions of a Deployment,
// without the first so many versions.
func (g *ground) leastAvailable(name string, after int) int64 {
	least := int64(1 << 30)
	for _, v := range g.world.History("Deployment", name)[after:] {
		least = min(least, harness.Number(v.Object, "status", "availableReplicas"))
	}
	return least
}

// changesTo counts how often the template of a workload was changed to refer to a bundle.
func (g *ground) changesTo(kind, name, application, bundle string) int {
	n, had := 0, false
	for _, v := range g.world.History(kind, name) {
		has := slices.Contains(bundles(v.Object, application), bundle)
		if has && !had {
			n++
		}
		had = has
	}
	return n
}
