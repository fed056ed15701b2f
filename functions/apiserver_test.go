package functions_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// warnings collects the warnings that an API server sent.
type warnings struct {
	sync.Mutex

	texts []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) take() []string {
	w.Lock()
	defer w.Unlock()
	out := w.texts
	w.texts = nil
	return out
}

// builtIn are the API groups that an API server serves without a CustomResourceDefinition.
var builtIn = []string{"v1", "apps/v1", "autoscaling/v2", "batch/v1", "networking.k8s.io/v1", "policy/v1", "rbac.authorization.k8s.io/v1"}

// TestAPIServerTakesAll: a real API server accepts every object of its built-in kinds that any
// claim composes, without a warning of an unknown field or of pods that are not restricted.
func TestAPIServerTakesAll(t *testing.T) {
	config := planetest.Start(t, false).Config(plane.Admin)
	warned := &warnings{}
	// controller-runtime sets its own handler only if none is set.
	config.WarningHandlerWithContext = warned
	c := planetest.Client(t, config)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted",
	}}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}

	// The API server must warn of these pods, otherwise the absence of warnings below proves
	// nothing.
	open := functionstest.Unstructured(functionstest.Parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: open, namespace: team}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: a, image: a}]}
`))
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(open), client.DryRunAll, client.FieldOwner("test")); err != nil || len(warned.take()) == 0 {
		t.Fatalf("want a warning of pods that are not restricted, got error %v", err)
	}

	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, o := range functionstest.Expand(t, claim, "") {
				u := functionstest.Unstructured(o.Object)
				if !slices.Contains(builtIn, u.GetAPIVersion()) {
					continue
				}
				n++
				u.SetManagedFields(nil)
				for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp"} {
					unstructured.RemoveNestedField(u.Object, "metadata", f)
				}
				delete(u.Object, "status")
				if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.FieldOwner("test"), client.ForceOwnership); err != nil {
					t.Errorf("%s: %v", o.Name(), err)
				}
				if w := warned.take(); len(w) > 0 {
					t.Errorf("%s: %s", o.Name(), strings.Join(w, "; "))
				}
			}
			if n == 0 {
				t.Errorf("there are no objects")
			}
		})
	}
}
