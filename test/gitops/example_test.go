package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/compositions"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

// documents returns the YAML documents of a file.
func documents(t *testing.T, path ...string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for text := range strings.SplitSeq(read(t, path...), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatalf("%v: %v", path, err)
		}
		out = append(out, u)
	}
	return out
}

func text(t *testing.T, u *unstructured.Unstructured, path ...string) string {
	t.Helper()
	s, _, err := unstructured.NestedString(u.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestExample: the manifests of the example repository can be applied, and both Flux and Argo CD
// apply all of its folders.
func TestExample(t *testing.T) {
	schemas, err := xrd.Load(apis.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	r := &render.Renderer{Schemas: schemas, Compositions: compositions.Files, Function: functions.New(functions.WithReview())}
	var paths []string
	for _, dir := range []string{"platform", "teams/shop"} {
		paths = append(paths, dir)
		listed, _, err := unstructured.NestedStringSlice(documents(t, "example", dir, "kustomization.yaml")[0].Object, "resources")
		if err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(root, "example", dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != len(listed)+1 {
			t.Errorf("%s lists %v, and holds %v", dir, listed, files)
		}
		for _, f := range listed {
			for _, u := range documents(t, "example", dir, f) {
				if !schemas.Has(u.GroupVersionKind()) {
					continue
				}
				u.SetNamespace("shop")
				if _, err := r.Converged(t.Context(), render.Input{Claim: u}); err != nil {
					t.Errorf("%s: %v", f, err)
				}
			}
		}
	}
	var ofFlux, ofArgo []string
	exprs := fluxExpressions(t)
	for _, u := range documents(t, "example", "flux", "kustomizations.yaml") {
		path := strings.TrimPrefix(text(t, u, "spec", "path"), "./")
		ofFlux = append(ofFlux, path)
		if !strings.HasPrefix(path, "teams/") {
			continue
		}
		b, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		var k kustomization
		if err := yaml.Unmarshal(b, &k); err != nil {
			t.Fatal(err)
		}
		got := map[string]expressions{}
		for _, e := range k.Spec.HealthCheckExprs {
			got[schema.FromAPIVersionAndKind(e.APIVersion, e.Kind).Group+"/"+e.Kind] = e
		}
		if diff := cmp.Diff(exprs, got); diff != "" || !k.Spec.Wait {
			t.Errorf("%s waits for its claims: %t, by other expressions than are shipped: -shipped, +example:\n%s", path, k.Spec.Wait, diff)
		}
	}
	for _, u := range documents(t, "example", "argocd", "applications.yaml") {
		ofArgo = append(ofArgo, text(t, u, "spec", "source", "path"))
	}
	for tool, got := range map[string][]string{"Flux": ofFlux, "Argo CD": ofArgo} {
		if slices.Sort(got); !slices.Equal(paths, got) {
			t.Errorf("%s applies %v, and the example has %v", tool, got, paths)
		}
	}
}

// TestExpressions: there are expressions for each kind, and no other folder in package/gitops.
func TestExpressions(t *testing.T) {
	exprs := fluxExpressions(t)
	for _, k := range kinds {
		if exprs[k].Current == "" || exprs[k].Failed == "" || exprs[k].InProgress == "" {
			t.Errorf("there are no expressions for %s", k)
		}
	}
	if len(exprs) != len(kinds) {
		t.Errorf("want expressions of %v, got %v", kinds, exprs)
	}
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range folders {
		names = append(names, f.Name())
	}
	if diff := cmp.Diff([]string{"argocd", "example", "flux"}, names); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
