package supervisor

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// shownPrimary returns another server of a StatefulSet that is ready among the pods that are marked as the
// primary, or "". A copy of a pod, as of kubectl debug, may have its labels.
func shownPrimary(marked []*corev1.Pod, set, own string) string {
	for _, pod := range marked {
		if instance.Pod(set, instance.Ordinal(pod.Name)) != pod.Name {
			continue
		}
		ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if pod.Name != own && ready && pod.DeletionTimestamp == nil {
			return pod.Name
		}
	}
	return ""
}

// hasLed reports whether a server has reported in a ConfigMap that it led a group of the cluster with this
// UID.
func hasLed(status *corev1.ConfigMap, owner string) bool {
	last := instance.Cluster{}
	if json.Unmarshal([]byte(status.Data[instance.ClusterKey]), &last) != nil {
		return false
	}
	return owner != "" && last.Owner == owner && last.Timeline > 0
}
