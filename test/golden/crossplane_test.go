package golden

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/render"
)

// tools returns the programs of the real render, and the function, which it builds from this
// tree. It skips the test if Crossplane's programs are not set.
func tools(t *testing.T) render.Tools {
	t.Helper()
	out := render.Tools{CLI: os.Getenv("CROSSPLANE_CLI"), Core: os.Getenv("CROSSPLANE_CORE")}
	if err := out.Check(); err != nil {
		t.Skipf("The real render is not compared: %v", err)
	}
	out.Function = filepath.Join(t.TempDir(), "function")
	if err := render.Build(t.Context(), "github.com/storeplane/storeplane/cmd/function", out.Function); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCrossplaneAgrees: for every example, and every claim that it composes, Crossplane composes
// what the simulator of the golden files does, both with nothing observed and with everything
// observed and healthy.
func TestCrossplaneAgrees(t *testing.T) {
	tools, r := tools(t), renderer(t)
	for _, e := range claims(t, r) {
		t.Run(e.name, func(t *testing.T) {
			result, err := r.Run(t.Context(), e.Input)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range result.Claims {
				ref := converge.Ref{Kind: c.GetKind(), Name: c.GetName()}
				t.Run(ref.String(), func(t *testing.T) {
					agree(t.Context(), t, r, tools, render.Input{Claim: fresh(c), Cluster: e.Cluster})
					agree(t.Context(), t, r, tools, render.Input{Claim: settled(c), Cluster: e.Cluster, Observed: values(result.Resources[ref])})
				})
			}
		})
	}
}

// fresh returns a claim without a status, as if nothing had been composed for it.
func fresh(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	delete(out.Object, "status")
	return out
}

// settled returns a claim without its conditions: render appends new conditions to those of a
// claim, in another order.
func settled(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "status", "conditions")
	return out
}

func values(in map[string]*unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(in))
	for _, u := range in {
		out = append(out, u)
	}
	return out
}

func agree(ctx context.Context, t *testing.T, r *render.Renderer, tools render.Tools, in render.Input) {
	t.Helper()
	want, err := r.Crossplane(ctx, tools, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Once(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("With %d objects observed, crossplane composition render (-want) and the simulator (+got) differ:\n%s", len(in.Observed), diff)
	}
}

// TestCrossplaneRefuses: nothing is printed for a claim that its definition accepts and the
// function rejects, and Crossplane and the simulator report the same error.
func TestCrossplaneRefuses(t *testing.T) {
	tools, r := tools(t), renderer(t)
	claim := &unstructured.Unstructured{}
	if err := claim.UnmarshalJSON([]byte(`{"apiVersion":"apps.example.com/v1","kind":"DatabaseCluster","metadata":{"name":"db"},"spec":{"size":1,"version":"9"}}`)); err != nil {
		t.Fatal(err)
	}
	out, err := r.Crossplane(t.Context(), tools, render.Input{Claim: claim})
	if !converge.IsRefused(err) || len(out) > 0 {
		t.Errorf("Crossplane(...): want a refusal and no output, got %v and %d bytes", err, len(out))
	}
	_, onceErr := r.Once(t.Context(), render.Input{Claim: claim})
	if diff := cmp.Diff(err.Error(), onceErr.Error()); diff != "" {
		t.Errorf("\nBoth ways give the same reason.\nOnce(...): -want, +got:\n%s", diff)
	}
}
