package claims

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Strip is the cache's transformation of whatever has none of its own: nobody
// looks at who manages which field, and of a claim only at its metadata, its
// environment, how it is, and of which release. A cache has no such setting by kind: it asks for
// each kind when it is made, and claims may be installed later.
func Strip(o any) (any, error) {
	if m, ok := o.(client.Object); ok {
		m.SetManagedFields(nil)
	}
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		forgetApplied(m)
		return o, nil
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok || !slices.Contains(Kinds, u.GroupVersionKind()) {
		return o, nil
	}
	forgetApplied(u)
	spec, status := map[string]any{}, map[string]any{}
	keep(spec, u, "spec", "environment")
	for _, field := range []string{"phase", "readyGeneration", "release", "pendingRelease"} {
		keep(status, u, "status", field)
	}
	var conditions []any
	for _, typ := range []string{typeReady, typeAccepted} {
		if c := conditionOf(u, typ); c != nil {
			conditions = append(conditions, c)
		}
	}
	if conditions != nil {
		status["conditions"] = conditions
	}
	u.Object["spec"], u.Object["status"] = spec, status
	return u, nil
}

// forgetApplied drops what kubectl applied last: all of a claim once more. Of what
// is written back as a whole it must stay, or kubectl would not know what to take
// away; metadata and claims never are.
func forgetApplied(o metav1.Object) {
	if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		delete(a, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(a)
	}
}

// keep a field of a part of an object.
func keep(into map[string]any, u *unstructured.Unstructured, part, field string) {
	if v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, part, field); ok {
		into[field] = v
	}
}
