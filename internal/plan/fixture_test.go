package plan_test

import (
	"context"
	"flag"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

var update = flag.Bool("update", false, "Write the golden files anew.")

const examples = "../../examples"

// now is the time of all plans.
var now = time.Date(2026, time.November, 1, 12, 0, 0, 0, time.UTC)

// fixed is a source of a fixed password and time.
type fixed struct{}

func (fixed) Password() (string, error) { return "not-a-secret-not-a-secret-not-a-1", nil }
func (fixed) Now() time.Time            { return now }

// released returns a planner of this release. It is created once, as compiling the rules is slow.
var released = sync.OnceValues(func() (*plan.Planner, error) { return plan.New(nil) })

func schemas(t testing.TB) xrd.Schemas {
	t.Helper()
	p, err := released()
	if err != nil {
		t.Fatal(err)
	}
	return p.Schemas
}

func planner(t testing.TB, s plan.State) *plan.Planner {
	t.Helper()
	p, err := released()
	if err != nil {
		t.Fatal(err)
	}
	return &plan.Planner{Schemas: p.Schemas, Compositions: p.Compositions, Function: p.Function, State: s, Now: now, Replace: true}
}

// example returns the claim of an example, and the other objects of its file.
func example(t testing.TB, path string) (*unstructured.Unstructured, []*unstructured.Unstructured) {
	t.Helper()
	all, err := render.Load(filepath.Join(examples, path))
	if err != nil {
		t.Fatal(err)
	}
	s := schemas(t)
	var claim *unstructured.Unstructured
	var beside []*unstructured.Unstructured
	for _, u := range all {
		if claim == nil && s.Has(u.GroupVersionKind()) {
			claim = u
			continue
		}
		beside = append(beside, u)
	}
	return claim, append(beside, needed()...)
}

// needed returns what examples require: the Secrets of a store, and the Gateway API.
func needed() []*unstructured.Unstructured {
	secret := func(name string, data map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data}}
		u.SetNamespace("default")
		u.SetName(name)
		return u
	}
	route := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}}
	route.SetNamespace("other")
	route.SetName("other")
	return []*unstructured.Unstructured{
		secret("backup-store", map[string]any{backup.KeyAWSAccess: "YQ==", backup.KeyAWSSecret: "Yg=="}),
		secret("backup-key", map[string]any{"passphrase": "bm90LWEtc2VjcmV0LW5vdC1hLXNlY3JldC1ub3QtYS0x"}),
		route,
	}
}

// cluster returns all objects of a cluster in which a claim has converged.
func cluster(t testing.TB, claim *unstructured.Unstructured, beside []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	p := planner(t, nil)
	r := &render.Renderer{Schemas: p.Schemas, Compositions: p.Compositions, Function: p.Function(fixed{}, images.Set{Registry: images.DefaultRegistry})}
	saved := state.NewSaved(beside)
	result, err := r.Run(t.Context(), render.Input{Claim: claim, Fetch: func(ctx context.Context, _ string, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
		return saved.Fetch(ctx, sel)
	}, Serves: saved.Serves})
	if err != nil {
		t.Fatal(err)
	}
	if hibernated, _, _ := unstructured.NestedBool(claim.Object, "spec", "hibernated"); !result.Ready && !hibernated {
		t.Fatalf("the example is not ready: %v", result.Claim.Object["status"])
	}
	out := append(slices.Clone(result.Claims), beside...)
	for _, claim := range result.Claims {
		var refs []any
		for _, u := range result.Resources[converge.Ref{Kind: claim.GetKind(), Name: claim.GetName()}] {
			refs = append(refs, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()})
			if !loadedKinds(t)[u.GetKind()] {
				out = append(out, u)
			}
		}
		if err := unstructured.SetNestedSlice(claim.Object, refs, "spec", "crossplane", "resourceRefs"); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// loadedKinds returns the kinds of claims.
func loadedKinds(t testing.TB) map[string]bool {
	out := map[string]bool{}
	for _, k := range schemas(t).Kinds() {
		out[k.Kind] = true
	}
	return out
}

// edit is an edit of a claim: a value at a path of its spec, or nil to remove the field.
type edit struct {
	value any
	path  []string
}

func set(value any, path ...string) edit { return edit{value: value, path: path} }

func (e edit) apply(t testing.TB, claim *unstructured.Unstructured) {
	t.Helper()
	path := append([]string{"spec"}, e.path...)
	if e.value == nil {
		unstructured.RemoveNestedField(claim.Object, path...)
		return
	}
	if err := unstructured.SetNestedField(claim.Object, e.value, path...); err != nil {
		t.Fatal(err)
	}
}
