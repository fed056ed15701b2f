package kube

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Ends reports whether a cluster ends: its StatefulSet is being deleted, or has no servers from
// now on, or its configuration is gone. Each object comes with the error of reading it. The pod's
// permissions may have been removed before it.
func Ends(set *appsv1.StatefulSet, setErr error, config *corev1.ConfigMap, configErr error) bool {
	if Gone(setErr) || Gone(configErr) || Unknown(setErr) {
		return true
	}
	if setErr == nil && (set.DeletionTimestamp != nil || set.Spec.Replicas != nil && *set.Spec.Replicas == 0) {
		return true
	}
	return configErr == nil && config.DeletionTimestamp != nil
}
