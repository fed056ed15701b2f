//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// systemNamespace is where Crossplane and its functions run.
const systemNamespace = "crossplane-system"

// functionLabel is the label on the pods of a function with the name of the Function.
const functionLabel = "pkg.crossplane.io/function"

var compositions = []string{
	"ecommerceplatforms.platform.example.com", "databaseclusters.apps.example.com", "webapps.apps.example.com",
}

func installation() types.Feature {
	return features.New("the installation").
		Assess("packages are healthy and definitions established", assess(packagesHealthy)).
		Assess("compositions find the function, which runs 2 restricted pods", assess(functionRuns)).
		Feature()
}

func packagesHealthy(ctx context.Context, n notes) error {
	var errs []error
	for _, kind := range []string{"Configuration", "Function"} {
		ps, err := cluster.List(ctx, kind, "", "")
		if err != nil {
			return err
		}
		found := 0
		for i := range ps {
			if !strings.Contains(ps[i].GetName(), "storeplane") {
				continue
			}
			found++
			c := harness.ClaimOf(&ps[i])
			if !c.Is("Installed") || !c.Is("Healthy") {
				errs = append(errs, fmt.Errorf("%s %s is not Installed and Healthy: %s", kind, ps[i].GetName(), c))
			}
			n.Addf("%s", harness.Field(&ps[i], "spec", "package"))
		}
		if found == 0 {
			errs = append(errs, fmt.Errorf("there is no %s of Storeplane", kind))
		}
	}
	for _, name := range compositions {
		xrd, err := cluster.Get(ctx, "CompositeResourceDefinition", "", name)
		if err != nil {
			return err
		}
		if c := harness.ClaimOf(xrd); !c.Is("Established") {
			errs = append(errs, fmt.Errorf("CompositeResourceDefinition %s is not Established: %s", name, c))
		}
	}
	return errors.Join(errs...)
}

// functionNames returns the functions that the Compositions refer to.
func functionNames(ctx context.Context) ([]string, error) {
	var out []string
	for _, name := range compositions {
		c, err := cluster.Get(ctx, "Composition", "", name)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, fmt.Errorf("there is no Composition %s", name)
		}
		steps, err := harness.List(c, "spec", "pipeline")
		if err != nil || len(steps) == 0 {
			return nil, fmt.Errorf("Composition %s has no pipeline: %w", name, err)
		}
		for _, step := range steps {
			ref, _ := step["functionRef"].(map[string]any)
			out = append(out, fmt.Sprint(ref["name"]))
		}
	}
	return out, nil
}

func functionRuns(ctx context.Context, n notes) error {
	names, err := functionNames(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		f, err := cluster.Get(ctx, "Function", "", name)
		if err != nil {
			return err
		}
		if c := harness.ClaimOf(f); !c.Is("Healthy") {
			return fmt.Errorf("Function %s, which Compositions refer to, is not healthy: %s", name, c)
		}
		if err := twoPods(ctx, name); err != nil {
			return err
		}
		n.Addf("%s", name)
	}
	return nil
}

func twoPods(ctx context.Context, function string) error {
	pods, err := cluster.Kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: functionLabel + "=" + function})
	if err != nil {
		return fmt.Errorf("cannot list the pods of Function %s: %w", function, err)
	}
	ready := 0
	for i := range pods.Items {
		if harness.PodReady(&pods.Items[i]) {
			ready++
		}
	}
	if ready != 2 {
		return fmt.Errorf("Function %s has %d ready pods, not 2", function, ready)
	}
	return cluster.Restricted(ctx, pods.Items[0].Spec)
}
