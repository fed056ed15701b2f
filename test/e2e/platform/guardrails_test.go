//go:build e2e

package platform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

func guardrails() types.Feature {
	return tests.Feature("guardrails", teamNamespace).
		Quick("what production may not have is refused at apply with what to change, and its twin is not", refusesProduction).
		Quick("an image from a registry that is not approved is refused at apply, and its twin is not", refusesRegistries).
		Feature()
}

// guarded is a claim and the message with which a guardrail refuses it, or "" if it is accepted.
type guarded struct{ kind, spec, want string }

// refusals are claims for production. ${REGISTRY} stands for the registry of the images.
var refusals = map[string]guarded{
	"Latest":         {"WebApp", "{environment: production, image: '${REGISTRY}/shop-frontend:latest'}", "image is ${REGISTRY}/shop-frontend:latest, which means the latest: name a version or a digest in production"},
	"LatestTwin":     {"WebApp", "{environment: production, image: '${REGISTRY}/shop-frontend:v1'}", ""},
	"NoTag":          {"EcommercePlatform", "{environment: production, frontend: {image: '${REGISTRY}/shop-frontend'}, backend: {image: '${REGISTRY}/shop-backend:v1'}}", "frontend.image is ${REGISTRY}/shop-frontend, which means the latest: name a version or a digest in production"},
	"NoTagTwin":      {"EcommercePlatform", "{environment: production, frontend: {image: '${REGISTRY}/shop-frontend:v1'}, backend: {image: '${REGISTRY}/shop-backend:v1'}}", ""},
	"NoTagElsewhere": {"WebApp", "{environment: staging, image: '${REGISTRY}/shop-frontend'}", ""},
	"NoLimit":        {"WebApp", "{environment: production, image: '${REGISTRY}/shop-frontend:v1', resources: {requests: {memory: 64Mi}}}", "resources has no limits.memory: set it in production, or leave out resources for the default"},
	"NoLimitTwin":    {"WebApp", "{environment: production, image: '${REGISTRY}/shop-frontend:v1', resources: {limits: {memory: 64Mi}}}", ""},
	"NoLimitTier":    {"EcommercePlatform", "{environment: production, frontend: {image: '${REGISTRY}/shop-frontend:v1'}, backend: {image: '${REGISTRY}/shop-backend:v1', resources: {limits: {cpu: 1}}}}", "backend.resources has no limits.memory: set it in production, or leave out resources for the default"},
	"Eleven":         {"EcommercePlatform", "{environment: production, frontend: {image: '${REGISTRY}/shop-frontend:v1'}, backend: {image: '${REGISTRY}/shop-backend:v1', replicas: 11}}", "backend.replicas may be at most 10 in production"},
	"ElevenTwin":     {"EcommercePlatform", "{environment: production, frontend: {image: '${REGISTRY}/shop-frontend:v1'}, backend: {image: '${REGISTRY}/shop-backend:v1', replicas: 10}}", ""},
}

func refusesProduction(ctx context.Context, n notes) error {
	as, err := teams(ctx)
	if err != nil {
		return err
	}
	return refuse(ctx, n, as, refusals)
}

// refuse applies each claim in a dry run and compares the result with what is wanted.
func refuse(ctx context.Context, n notes, as *harness.Cluster, cases map[string]guarded) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		err := try(ctx, as, tc)
		switch want := inRegistry(tc.want); {
		case want == "" && err != nil:
			errs = append(errs, fmt.Errorf("%s: what is right was refused: %w", name, err))
		case want != "" && err == nil:
			errs = append(errs, fmt.Errorf("%s: it was accepted, want: %s", name, want))
		case want != "" && !strings.Contains(err.Error(), want):
			errs = append(errs, fmt.Errorf("%s: want: %s\n  got: %w", name, want, err))
		}
	}
	n.Addf("%d claims", len(cases))
	return errors.Join(errs...)
}

func inRegistry(text string) string {
	return strings.ReplaceAll(text, "${REGISTRY}", cluster.Registry)
}

// try applies a claim in a dry run.
func try(ctx context.Context, as *harness.Cluster, g guarded) error {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.example.com/v1", "kind": g.kind}}
	if g.kind == "EcommercePlatform" {
		u.SetAPIVersion("platform.example.com/v1")
	}
	u.SetName("guarded")
	u.SetNamespace(teamNamespace)
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(inRegistry(g.spec)), &spec); err != nil {
		return fmt.Errorf("cannot parse %s: %w", g.spec, err)
	}
	u.Object["spec"] = spec
	_, err := as.Create(ctx, u, metav1.DryRunAll)
	return err
}

const settings = "storeplane"

// refusesRegistries approves the registry of all images of the suite. The settings apply to all
// claims of the cluster, so they are changed for as short a time as possible and then restored.
func refusesRegistries(ctx context.Context, n notes) error {
	as, err := teams(ctx)
	if err != nil {
		return err
	}
	was, err := cluster.Get(ctx, "EnvironmentConfig", "", settings)
	if err != nil {
		return err
	}
	ours, _, _ := strings.Cut(cluster.Registry, "/")
	approved := []any{ours, companyRegistry}
	if err := approve(ctx, was, approved); err != nil {
		return err
	}
	sentence := ", which is from no approved registry: use an image from " + ours + " or " + companyRegistry
	cases := map[string]guarded{
		"Elsewhere":     {"WebApp", "{image: 'images.example.net/app:v1'}", "image is images.example.net/app:v1" + sentence},
		"ElsewhereTwin": {"WebApp", "{image: '${REGISTRY}/shop-frontend:v1'}", ""},
		"Docker":        {"WebApp", "{image: 'nginx:1.25'}", "image is docker.io/library/nginx:1.25" + sentence},
		"Tier":          {"EcommercePlatform", "{frontend: {image: '${REGISTRY}/shop-frontend:v1'}, backend: {image: 'images.example.net/backend:v1'}}", "backend.image is images.example.net/backend:v1" + sentence},
		"TierTwin":      {"EcommercePlatform", "{frontend: {image: '" + companyRegistry + "/ecommerce-frontend:v2.1.0'}, backend: {image: '" + companyRegistry + "/ecommerce-backend:v2.1.0'}}", ""},
	}
	// The API server applies new parameters a moment later.
	var last error
	err = wait.For(func(ctx context.Context) (bool, error) {
		last = try(ctx, as, cases["Elsewhere"])
		return last != nil && strings.Contains(last.Error(), "approved registry"), nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		err = fmt.Errorf("waited %s for the approved registries to be in force: %w: %w", soon, err, last)
	} else {
		err = refuse(ctx, n, as, cases)
	}
	// Restore also after an interrupt: all claims of the cluster depend on the settings.
	return errors.Join(err, restore(context.WithoutCancel(ctx), was))
}

// approve adds approved registries to the settings.
func approve(ctx context.Context, was *unstructured.Unstructured, registries []any) error {
	policy := map[string]any{"approvedRegistries": registries}
	if was != nil {
		_, err := cluster.Patch(ctx, "EnvironmentConfig", "", settings, harness.Patch{"data": harness.Patch{"policy": policy}})
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1beta1", "kind": "EnvironmentConfig", "data": map[string]any{"policy": policy},
	}}
	u.SetName(settings)
	_, err := cluster.Create(ctx, u)
	return err
}

// restore restores the settings. If there were none, an object without data stays, which means the
// same: claims that were composed with settings must be composed without them before the object is
// deleted.
func restore(ctx context.Context, was *unstructured.Unstructured) error {
	if was == nil {
		_, err := cluster.Patch(ctx, "EnvironmentConfig", "", settings, harness.Patch{"data": nil})
		return err
	}
	policy, _, _ := unstructured.NestedMap(was.Object, "data", "policy")
	if policy != nil && policy["approvedRegistries"] == nil {
		policy["approvedRegistries"] = nil // A merge patch removes what is null.
	}
	_, err := cluster.Patch(ctx, "EnvironmentConfig", "", settings, harness.Patch{"data": harness.Patch{"policy": policy}})
	return err
}
