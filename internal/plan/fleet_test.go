package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/render"
)

// another has the images of another release of Storeplane.
var another = images.Set{Registry: images.DefaultRegistry, Digests: images.Digests{
	"postgresql:17": "sha256:" + strings.Repeat("1", 64),
	"redis:8":       "sha256:" + strings.Repeat("2", 64),
}}

// TestFleet: the plan of another release for three claims, by namespace, with the worst first.
func TestFleet(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, path := range []string{"webapp/minimal.yaml", "databasecluster/production.yaml", "shop/store.yaml"} {
		claim, beside := example(t, path)
		objects = append(objects, cluster(t, claim, beside)...)
	}
	saved := state.NewSaved(objects)
	p := planner(t, saved)
	claims, err := saved.Claims(t.Context(), p.Schemas.Kinds(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]*images.Set{"fleet-same-release": nil, "fleet-other-release": &another} {
		t.Run(name, func(t *testing.T) {
			p := planner(t, saved)
			p.Images = set
			plans, err := p.Fleet(t.Context(), claims, nil)
			if err != nil {
				t.Fatal(err)
			}
			b := &bytes.Buffer{}
			if err := plan.NewReport(plans).FleetText(b, false); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", b.Bytes())
		})
	}
	other, err := saved.Claims(t.Context(), p.Schemas.Kinds(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(1, len(other)); diff != "" {
		t.Errorf("-want claims of namespace shop, +got:\n%s", diff)
	}
}

// BenchmarkFleet plans 1,000 claims: 900 WebApps, 80 databases and 20 EcommercePlatforms.
func BenchmarkFleet(b *testing.B) {
	var objects []*unstructured.Unstructured
	for path, n := range map[string]int{"webapp/production.yaml": 900, "databasecluster/minimal.yaml": 80, "shop/store.yaml": 20} {
		claim, beside := example(b, path)
		template := &bytes.Buffer{}
		for _, u := range cluster(b, claim, beside) {
			raw, err := u.MarshalJSON()
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(template, "---\n%s\n", raw)
		}
		for i := range n {
			// The UIDs depend on names, so those of each namespace must be made different.
			text := strings.NewReplacer(`"namespace":"`+claim.GetNamespace()+`"`, fmt.Sprintf(`"namespace":"%s-%d"`, claim.GetNamespace(), i), `"uid":"`, fmt.Sprintf(`"uid":"%d-`, i)).Replace(template.String())
			all, err := render.Parse([]byte(text))
			if err != nil {
				b.Fatal(err)
			}
			objects = append(objects, all...)
		}
	}
	saved := state.NewSaved(objects)
	p := planner(b, saved)
	p.Images = &another
	claims, err := saved.Claims(b.Context(), p.Schemas.Kinds(), "")
	if err != nil {
		b.Fatal(err)
	}
	if len(claims) != 1000 {
		b.Fatalf("want 1000 claims, got %d", len(claims))
	}
	for b.Loop() {
		if _, err := p.Fleet(b.Context(), claims, nil); err != nil {
			b.Fatal(err)
		}
	}
}
