package claims

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Strip is the cache's transform for all kinds that have none of their own. It removes managed
// fields, which are not read, and leaves of a claim only its metadata, its environment, and its
// status as far as it shows its state and its release. The cache cannot have a transform for the
// kinds of claims: it looks up each such kind when it is created, and claims may be installed
// later.
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
	for _, field := range []string{appsv1.FieldPhase, appsv1.FieldReadyGeneration, appsv1.FieldRelease, appsv1.FieldPendingRelease} {
		keep(status, u, "status", field)
	}
	var conditions []any
	for _, typ := range []string{string(xpv2.TypeReady), appsv1.TypeAccepted} {
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

// forgetApplied removes the annotation with what kubectl applied last, which is a second copy of
// the whole claim. In an object that is written back as a whole it must stay, or kubectl could not
// find out which fields to remove. Metadata and claims are never written back.
func forgetApplied(o metav1.Object) {
	if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		delete(a, corev1.LastAppliedConfigAnnotation)
		o.SetAnnotations(a)
	}
}

// keep copies a field of a part of an object, such as its spec, into a map.
func keep(into map[string]any, u *unstructured.Unstructured, part, field string) {
	if v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, part, field); ok {
		into[field] = v
	}
}
