package controller_test

import (
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/storeplane/storeplane/internal/controller/pause"
)

// lifeOfPause pauses one object of each family with its claim, and resumes it when the claim is
// gone.
func lifeOfPause(t *testing.T) *world {
	t.Helper()
	object := func(gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		u.SetNamespace("shop")
		u.SetName(name)
		u.SetUID("uid")
		return u
	}
	w := newWorld(t)
	for _, f := range pause.Families() {
		for _, k := range f.Kinds() {
			// The controller watches the metadata of each kind.
			w.note(k, "", "list", "watch")
		}
		for _, p := range f.Parents {
			parent, child := object(p, "parent"), object(f.Child, "child")
			parent.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
			child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(), Name: "parent", UID: "uid", Controller: new(true)}})
			r := pause.NewReconciler(w.provider, f, logging.NewNopLogger())
			is := func(want string) {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(child)}); err != nil {
					t.Fatal(err)
				}
				if err := w.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
					t.Fatal(err)
				}
				if got := child.GetAnnotations()["crossplane.io/paused"]; got != want {
					t.Errorf("%s of a paused %s: want %q, got %q", f.Child.Kind, p.Kind, want, got)
				}
			}
			for _, o := range []client.Object{parent, child} {
				if err := w.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			is("true")
			if err := w.Delete(t.Context(), parent); err != nil {
				t.Fatal(err)
			}
			is("")
			if err := w.Delete(t.Context(), child); err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}
