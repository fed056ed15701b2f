package roll

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// Observe returns a cluster as its objects show it: a place for each server of StatefulSet scope that
// is desired, and those beyond that exist. stands adds what is known of a server beside its pod.
func Observe(scope, primary string, desired *instance.Desired, pods []*corev1.Pod, set *appsv1.StatefulSet, stands func(*Server)) Cluster {
	cluster := Cluster{
		Primary: primary, Size: int(desired.Size), Synchronous: desired.Synchronous, Hibernated: desired.Hibernated, LagBytes: instance.LagBytes,
	}
	revision := ""
	if set != nil && set.Status.ObservedGeneration == set.Generation && set.DeletionTimestamp == nil {
		revision = set.Status.UpdateRevision
		cluster.Replace = revision != "" && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	}
	byOrdinal := map[int]*corev1.Pod{}
	count := cluster.Size
	for _, pod := range pods {
		if n := instance.Ordinal(pod.Name); strings.HasPrefix(pod.Name, scope+"-") && n < instance.MaxSize {
			byOrdinal[int(n)] = pod
			count = max(count, int(n)+1)
		}
	}
	for n := range count {
		pod := byOrdinal[n]
		if pod == nil && n >= cluster.Size {
			continue
		}
		s := Server{Pod: instance.Pod(scope, int32(n)), Ordinal: n}
		if pod != nil {
			s.Exists, s.Deleting, s.Ready = true, pod.DeletionTimestamp != nil, Ready(pod)
			s.Outdated = revision != "" && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != revision
		}
		stands(&s)
		cluster.Servers = append(cluster.Servers, s)
	}
	return cluster
}

// Ready reports whether a pod is ready.
func Ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
