package build

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceAccount returns the ServiceAccount of a component. Its token is not mounted automatically.
func ServiceAccount(s Scope, component, app string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   s.Meta(component, app),
		AutomountServiceAccountToken: new(false),
	}
}
