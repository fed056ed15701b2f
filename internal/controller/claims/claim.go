package claims

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// Kinds are the kinds of claims.
var Kinds = []schema.GroupVersionKind{
	platformv1.GroupVersion.WithKind(platformv1.EcommercePlatformKind),
	appsv1.GroupVersion.WithKind(appsv1.DatabaseClusterKind),
	appsv1.GroupVersion.WithKind(appsv1.WebAppKind),
}

// read returns what the metrics show of a claim.
func read(u *unstructured.Unstructured) telemetry.Claim {
	c := telemetry.Claim{
		Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(),
		Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration(),
	}
	if owner := metav1.GetControllerOf(u); owner != nil {
		c.OwnerKind, c.OwnerName = owner.Kind, owner.Name
	}
	c.Environment, _, _ = unstructured.NestedString(u.Object, "spec", "environment")
	c.Phase, _, _ = unstructured.NestedString(u.Object, "status", appsv1.FieldPhase)
	c.ReadyGeneration, _, _ = unstructured.NestedInt64(u.Object, "status", appsv1.FieldReadyGeneration)
	c.Refused = conditionOf(u, appsv1.TypeAccepted)["status"] == string(corev1.ConditionFalse)
	if ready := conditionOf(u, string(xpv2.TypeReady)); ready != nil {
		c.Ready = ready["status"] == string(corev1.ConditionTrue)
		since, _ := ready["lastTransitionTime"].(string)
		c.Since, _ = time.Parse(time.RFC3339, since)
	}
	return c
}

// conditionOf returns the condition of a type of a claim, or nil.
func conditionOf(u *unstructured.Unstructured, typ string) map[string]any {
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, each := range list {
		if c, ok := each.(map[string]any); ok && c["type"] == typ {
			return c
		}
	}
	return nil
}
