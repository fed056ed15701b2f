//go:build e2e

package upgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// examples are those of the previous release that run beside orders and store. Its production examples need
// more than a node of two cores, and its seeds with image nginx a namespace that allows pods to run as root.
var examples = []string{"webapp/minimal.yaml", "vote/webapp.yaml", "vote/appconfig.yaml", "seeds/test-db.yaml"}

// inWindow are the claims whose window is closed: an upgrade replaces none of their pods.
var inWindow = []string{"store", "hello", "vote", "test-db"}

// example returns an example of the previous release in the namespace of the tests. A claim gets a
// window.
func example(file string, window map[string]any) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(filepath.Join(root, beforeFolder, "tree", "examples", file))
	if err != nil {
		return nil, fmt.Errorf("cannot read an example of the previous release: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", file, err)
	}
	u.SetNamespace(namespace)
	if u.GetKind() == "AppConfig" {
		return u, nil
	}
	return u, unstructured.SetNestedMap(u.Object, window, "spec", "maintenance")
}

// applyExamples applies the examples and waits until all are Ready.
func (g *ground) applyExamples(ctx context.Context, start string) error {
	if err := cluster.CreateSecret(ctx, namespace, "vote-ballots", map[string]string{"key": "0123456789abcdef0123456789abcdef"}); err != nil {
		return err
	}
	var all []*unstructured.Unstructured
	for _, file := range examples {
		u, err := example(file, map[string]any{"start": start, "hours": int64(1)})
		if err != nil {
			return err
		}
		if u, err = cluster.Create(ctx, u); err != nil {
			return err
		}
		all = append(all, u)
	}
	var errs []error
	for _, u := range all {
		errs = append(errs, g.available(ctx, u.GetKind(), u.GetName()))
	}
	return errors.Join(errs...)
}

// available waits until an object has condition Ready. An AppConfig has no status of a claim.
func (g *ground) available(ctx context.Context, kind, name string) error {
	return g.world.Await(ctx, started, kind+" "+name+" to be Ready", func() (bool, string) {
		c := g.world.Claim(kind, name)
		return c.Is("Ready"), c.String()
	})
}

// waiting returns the pods of the claims whose window is closed, by name.
func (g *ground) waiting() map[string]string {
	out := map[string]string{}
	for _, claim := range inWindow {
		maps.Copy(out, g.pods(claim))
	}
	return out
}

// editsExamples checks that the examples are Ready with this release, and that an edit of the AppConfig
// reaches the pods that read it.
func (g *ground) editsExamples(ctx context.Context, _ notes) error {
	var errs []error
	for _, u := range g.claims() {
		errs = append(errs, g.world.AwaitReady(ctx, started, u.GetKind(), u.GetName()))
	}
	before := g.pods("vote")
	_, err := cluster.Patch(ctx, "AppConfig", namespace, "vote", harness.Patch{"spec": harness.Patch{"forProvider": harness.Patch{"config": harness.Patch{"OPTIONS": "Cats,Dogs,Birds"}}}})
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return errors.Join(errs...)
	}
	err = g.world.Await(ctx, started, "the pods of vote to be replaced for its AppConfig", func() (bool, string) {
		now := g.pods("vote")
		for name := range before {
			if _, same := now[name]; same {
				return false, "pod " + name + " still runs"
			}
		}
		return len(now) > 0, "there are none"
	})
	return errors.Join(err, g.available(ctx, "AppConfig", "vote"))
}
