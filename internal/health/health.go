package health

import (
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// stored lists the kinds that are healthy once the API server has stored them: there is nothing to
// wait for, or (CronJob, HorizontalPodAutoscaler) what there is to wait for blocks nothing.
var stored = map[schema.GroupKind]bool{
	{Kind: "ConfigMap"}:               true,
	{Kind: "Secret"}:                  true,
	{Kind: "Service"}:                 true,
	{Kind: "ServiceAccount"}:          true,
	{Group: "batch", Kind: "CronJob"}: true,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:   true,
	{Group: "networking.k8s.io", Kind: "Ingress"}:             true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:       true,
	{Group: "policy", Kind: "PodDisruptionBudget"}:            true,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:        true,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: true,
	{Group: "protection.crossplane.io", Kind: "Usage"}:        true,
	{Group: "monitoring.coreos.com", Kind: "PodMonitor"}:      true,
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}:  true,
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:  true,
}

// kstatusGroups are evaluated by kstatus. All other kinds with a status are expected to have a
// Ready condition.
var kstatusGroups = map[string]bool{"": true, "apps": true, "batch": true}

var (
	jobKind       = schema.GroupKind{Group: "batch", Kind: "Job"}
	appConfigKind = configv1.AppConfigGroupVersionKind.GroupKind()
)

// IsStored reports whether objects of this kind are healthy as soon as they are stored.
func IsStored(gk schema.GroupKind) bool { return stored[gk] }

// Of returns the health of an object of the cluster.
func Of(obj *structpb.Struct) Status {
	if IsBeingDeleted(obj) {
		return progressing("Being deleted")
	}
	gk := GroupKind(obj)
	switch {
	case stored[gk]:
		return healthy()
	case gk == jobKind:
		return job(obj)
	case gk == appConfigKind:
		return appConfig(obj)
	case kstatusGroups[gk.Group]:
		return kstatus(obj)
	default:
		return readyCondition(obj)
	}
}

// IsBeingDeleted reports whether an object is being deleted.
func IsBeingDeleted(obj *structpb.Struct) bool {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["deletionTimestamp"].GetStringValue() != ""
}

// OfMissing returns the health of an object that is to be applied and does not exist yet. Where
// possible its message is the one that Of will return for the new object, so that it does not
// change needlessly.
func OfMissing(want *structpb.Struct) Status {
	gk := GroupKind(want)
	switch {
	case stored[gk]:
		return progressing("Not created yet")
	case gk == jobKind:
		return job(want)
	case kstatusGroups[gk.Group]:
		return progressing(words(want, "Not created yet"))
	default:
		return readyCondition(want)
	}
}

// GroupKind returns the group and kind of an object, from its apiVersion and kind.
func GroupKind(obj *structpb.Struct) schema.GroupKind {
	gv, err := schema.ParseGroupVersion(obj.GetFields()["apiVersion"].GetStringValue())
	if err != nil {
		return schema.GroupKind{Kind: obj.GetFields()["kind"].GetStringValue()}
	}
	return schema.GroupKind{Group: gv.Group, Kind: obj.GetFields()["kind"].GetStringValue()}
}

// unread are the fields of a spec that kstatus never reads: most of it.
var unread = map[string]bool{"template": true, "volumeClaimTemplates": true, "selector": true}

// kstatus returns the health that the library computes. Only what it reads is converted: managed
// fields and pod templates are the greater part of an object.
func kstatus(obj *structpb.Struct) Status {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for _, f := range []string{"apiVersion", "kind", "status"} {
		if v, ok := obj.GetFields()[f]; ok {
			u.Object[f] = integers(v)
		}
	}
	spec := map[string]any{}
	for f, v := range obj.GetFields()["spec"].GetStructValue().GetFields() {
		if !unread[f] {
			spec[f] = integers(v)
		}
	}
	u.Object["spec"] = spec
	meta := map[string]any{}
	for _, f := range []string{"name", "namespace", "generation"} {
		if v, ok := obj.GetFields()["metadata"].GetStructValue().GetFields()[f]; ok {
			meta[f] = integers(v)
		}
	}
	u.Object["metadata"] = meta

	r, err := status.Compute(u)
	if err != nil {
		return progressing(fmt.Sprintf("Its status cannot be read: %v", err))
	}
	switch r.Status {
	case status.CurrentStatus:
		return healthy()
	case status.FailedStatus:
		return failed(words(obj, r.Message))
	case status.InProgressStatus, status.TerminatingStatus, status.NotFoundStatus, status.UnknownStatus:
		return progressing(words(obj, r.Message))
	}
	return progressing(words(obj, r.Message))
}

// integers returns v as Kubernetes' JSON decoders do: numbers without a fraction are int64.
func integers(v *structpb.Value) any {
	switch k := v.GetKind().(type) {
	case *structpb.Value_NumberValue:
		if i := int64(k.NumberValue); float64(i) == k.NumberValue {
			return i
		}
		return k.NumberValue
	case *structpb.Value_StructValue:
		out := make(map[string]any, len(k.StructValue.GetFields()))
		for n, f := range k.StructValue.GetFields() {
			out[n] = integers(f)
		}
		return out
	case *structpb.Value_ListValue:
		out := make([]any, len(k.ListValue.GetValues()))
		for i, e := range k.ListValue.GetValues() {
			out[i] = integers(e)
		}
		return out
	default:
		return v.AsInterface()
	}
}

// words returns the message of a workload. It has no counts: each change of a message is a write to
// the claim and an event for its watchers, and the status has fields for counts.
func words(obj *structpb.Struct, fallback string) string {
	kind := obj.GetFields()["kind"].GetStringValue()
	if kind != "Deployment" && kind != "StatefulSet" && kind != "DaemonSet" {
		return fallback
	}
	if fallback == "Progress deadline exceeded" {
		return stuck + seePods
	}
	return podsUnready
}
