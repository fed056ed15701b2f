package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inherited labels say of which claim an object is, and which part of it.
var inherited = []string{
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/part-of", "platform",
}

// Inherit adds to an object's labels those by which what a claim makes is found,
// from the managed resource that the object is made for. What is set already
// stays.
func Inherit(labels map[string]string, from metav1.Object) map[string]string {
	for _, k := range inherited {
		if v := from.GetLabels()[k]; v != "" && labels[k] == "" {
			labels[k] = v
		}
	}
	return labels
}
