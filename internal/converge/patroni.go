package converge

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a DatabaseCluster's pods and its function agree on.
const (
	patroniLabel      = "storeplane.example.com/patroni"
	primaryAnnotation = "storeplane.example.com/primary"
)

// ElectPrimary plays what Patroni does in the pods of a StatefulSet: it elects
// the first pod and writes its name on the ConfigMap of its configuration.
func ElectPrimary(composed []*unstructured.Unstructured) {
	for _, set := range composed {
		scope, _, _ := unstructured.NestedString(set.Object, "spec", "template", "metadata", "labels", patroniLabel)
		if set.GetKind() != "StatefulSet" || scope == "" || replicas(set) == 0 {
			continue
		}
		for _, state := range composed {
			if state.GetKind() == "ConfigMap" && state.GetName() == scope+"-config" {
				_ = unstructured.SetNestedField(state.Object, set.GetName()+"-0", "metadata", "annotations", primaryAnnotation)
			}
		}
	}
}
