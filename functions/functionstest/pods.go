package functionstest

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// Pod is the pod template of a composed object.
type Pod struct {
	// Component and Kind are those of the object.
	Component, Kind string

	// Labels, Annotations and Spec are those of the template.
	Labels, Annotations map[string]string
	Spec                corev1.PodSpec
}

// Pods returns the pod templates of all objects that have one, sorted by component.
func Pods(t testing.TB, objs map[string]*structpb.Struct) []Pod {
	t.Helper()
	var out []Pod
	for _, n := range slices.Sorted(maps.Keys(objs)) {
		var tpl corev1.PodTemplateSpec
		kind := Get(objs[n], "kind").GetStringValue()
		switch kind {
		case "Deployment":
			tpl = As[k8sappsv1.Deployment](t, objs[n]).Spec.Template
		case "StatefulSet":
			tpl = As[k8sappsv1.StatefulSet](t, objs[n]).Spec.Template
		case "Job":
			tpl = As[batchv1.Job](t, objs[n]).Spec.Template
		case "CronJob":
			tpl = As[batchv1.CronJob](t, objs[n]).Spec.JobTemplate.Spec.Template
		default:
			continue
		}
		out = append(out, Pod{Component: n, Kind: kind, Labels: tpl.Labels, Annotations: tpl.Annotations, Spec: tpl.Spec})
	}
	return out
}
