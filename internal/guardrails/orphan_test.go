package guardrails_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/test/plane/planetest"
)

// testOrphans: a claim can only be deleted without its composed resources while Crossplane does not
// reconcile it.
func testOrphans(t *testing.T, g *gate) {
	g.settings(t, nil)
	const refused = "Crossplane is at work on this claim, and what it applies while Kubernetes lets go of the claim's objects would be deleted with it, data too: " +
		"pause the claim first (kubectl annotate -n default webapp.apps.example.com store crossplane.io/paused=true), " +
		"wait until its condition Synced has reason ReconcilePaused, delete it with --cascade=orphan --wait=false, and remove the annotation"
	orphan, background := client.PropagationPolicy(metav1.DeletePropagationOrphan), client.PropagationPolicy(metav1.DeletePropagationBackground)
	paused := map[string]any{"type": "Synced", "status": "False", "reason": "ReconcilePaused", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	synced := map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	cases := map[string]struct {
		reason    string
		pause     bool
		condition map[string]any
		finalizer string
		options   []client.DeleteOption
		want      string
	}{
		"AtWork":     {reason: "Crossplane may be applying what it composed.", condition: synced, options: []client.DeleteOption{orphan}, want: refused},
		"New":        {reason: "It may be about to.", options: []client.DeleteOption{orphan}, want: refused},
		"Unseen":     {reason: "It has not seen the pause yet.", pause: true, condition: synced, options: []client.DeleteOption{orphan}, want: refused},
		"PauseEnded": {reason: "It has not seen the end of the pause yet.", condition: paused, options: []client.DeleteOption{orphan}, want: refused},
		"Finalizer":  {reason: "A finalizer asks for the same.", condition: synced, finalizer: metav1.FinalizerOrphanDependents, want: refused},
		"Paused":     {reason: "Crossplane leaves the claim alone.", pause: true, condition: paused, options: []client.DeleteOption{orphan}},
		"Whole":      {reason: "What is deleted with all that it composed needs no pause.", condition: synced, options: []client.DeleteOption{background}},
		"Plain":      {reason: "Nor does one for which nothing is said.", condition: synced},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := claim(t, "WebApp", "{image: example.com/app:v1}")
			if tc.pause {
				u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
			}
			if tc.finalizer != "" {
				u.SetFinalizers([]string{tc.finalizer})
			}
			g.create(t, u)
			t.Cleanup(func() {
				if tc.finalizer != "" {
					if err := g.Patch(context.WithoutCancel(t.Context()), u, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
						t.Error(err)
					}
				}
				if err := g.Delete(context.WithoutCancel(t.Context()), u); err != nil {
					t.Error(err)
				}
			})
			if tc.condition != nil {
				if err := unstructured.SetNestedSlice(u.Object, []any{tc.condition}, "status", "conditions"); err != nil {
					t.Fatal(err)
				}
				if err := g.Status().Update(t.Context(), u); err != nil {
					t.Fatal(err)
				}
			}
			// The API server applies policies a moment after they were created.
			planetest.Eventually(t, soon, "the API server judges the deletion", func() error {
				if got := refusal(g.Delete(t.Context(), u, append(tc.options, client.DryRunAll)...)); got != tc.want {
					return fmt.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				return nil
			})
		})
	}
}
