package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inherited are the labels that show to which claim an object belongs, and to which part of it.
var inherited = []string{
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/part-of", "platform",
}

// Inherit adds to an object's labels those by which the objects of a claim are found, from the
// managed resource that the object is created for. A label that is set already stays.
func Inherit(labels map[string]string, from metav1.Object) map[string]string {
	for _, k := range inherited {
		if v := from.GetLabels()[k]; v != "" && labels[k] == "" {
			labels[k] = v
		}
	}
	return labels
}
