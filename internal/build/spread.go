package build

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Spread returns constraints by which the scheduler spreads a component's pods over nodes and
// zones. They are preferences: with too few nodes pods run beside each other.
func Spread(s Scope, component string) []corev1.TopologySpreadConstraint {
	var out []corev1.TopologySpreadConstraint
	for _, key := range []string{corev1.LabelHostname, corev1.LabelTopologyZone} {
		out = append(out, corev1.TopologySpreadConstraint{
			MaxSkew:           1,
			TopologyKey:       key,
			WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:     &metav1.LabelSelector{MatchLabels: s.Selector(component)},
		})
	}
	return out
}

// AntiAffinity returns an affinity by which the scheduler prefers a node without another of a
// component's pods.
func AntiAffinity(s Scope, component string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:   corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: s.Selector(component)},
			},
		}},
	}}
}

// DisruptionBudget lets the drain of a node evict one of a component's pods at a time.
func DisruptionBudget(s Scope, component, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "PodDisruptionBudget"},
		ObjectMeta: s.Meta(component, app),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       &metav1.LabelSelector{MatchLabels: s.Selector(component)},
			// A pod that crashes must not keep its node from being drained.
			UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
		},
	}
}
