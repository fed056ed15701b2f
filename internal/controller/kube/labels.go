package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/label"
)

// inherited are the labels that show to which claim an object belongs, and to which part of it.
var inherited = []string{
	label.Name, label.Instance, label.Component, label.PartOf, label.Platform,
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
