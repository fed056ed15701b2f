package functions_test

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// pod is a pod template of a composed object.
type pod struct {
	component string
	kind      string
	labels    map[string]string
	spec      corev1.PodSpec
}

// pods of all objects that make some, in the order of their components.
func pods(t testing.TB, objs map[string]*structpb.Struct) []pod {
	t.Helper()
	var out []pod
	for _, n := range slices.Sorted(maps.Keys(objs)) {
		var tpl corev1.PodTemplateSpec
		kind := get(objs[n], "kind").GetStringValue()
		switch kind {
		case "Deployment":
			tpl = as[k8sappsv1.Deployment](t, objs[n]).Spec.Template
		case "StatefulSet":
			tpl = as[k8sappsv1.StatefulSet](t, objs[n]).Spec.Template
		case "Job":
			tpl = as[batchv1.Job](t, objs[n]).Spec.Template
		case "CronJob":
			tpl = as[batchv1.CronJob](t, objs[n]).Spec.JobTemplate.Spec.Template
		default:
			continue
		}
		out = append(out, pod{component: n, kind: kind, labels: tpl.Labels, spec: tpl.Spec})
	}
	return out
}
