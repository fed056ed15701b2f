package build

import (
	"fmt"
	"maps"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// defaultCPUUtilization is the target, in percent, of a claim that sets none.
const defaultCPUUtilization = 80

// Autoscaler returns the autoscaler of a Deployment. CheckAutoscaling checks its targets.
func Autoscaler(meta metav1.ObjectMeta, deployment string, a *appsv1.Autoscaling) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: autoscalingv2.SchemeGroupVersion.String(), Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: meta,
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
			MinReplicas:    a.MinReplicas,
			MaxReplicas:    a.MaxReplicas,
			Metrics:        targets(a),
		},
	}
}

// targets returns the metrics of an autoscaler. The number of pods follows the one that demands
// most.
func targets(a *appsv1.Autoscaling) []autoscalingv2.MetricSpec {
	var out []autoscalingv2.MetricSpec
	if a.TargetCPUUtilization != nil {
		out = append(out, utilization(corev1.ResourceCPU, a.TargetCPUUtilization))
	}
	if a.TargetMemoryUtilization != nil {
		out = append(out, utilization(corev1.ResourceMemory, a.TargetMemoryUtilization))
	}
	for i := range a.Metrics {
		out = append(out, metric(&a.Metrics[i]))
	}
	if len(out) == 0 {
		out = append(out, utilization(corev1.ResourceCPU, new(int32(defaultCPUUtilization))))
	}
	return out
}

func utilization(of corev1.ResourceName, percent *int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType,
		Resource: &autoscalingv2.ResourceMetricSource{
			Name:   of,
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: percent},
		},
	}
}

func metric(m *appsv1.AutoscalingMetric) autoscalingv2.MetricSpec {
	id := autoscalingv2.MetricIdentifier{Name: m.Name, Selector: m.Selector}
	target := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse(m.AverageValue))}
	if m.Type == string(autoscalingv2.ExternalMetricSourceType) {
		return autoscalingv2.MetricSpec{
			Type:     autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricSource{Metric: id, Target: target},
		}
	}
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.PodsMetricSourceType,
		Pods: &autoscalingv2.PodsMetricSource{Metric: id, Target: target},
	}
}

// Measured adds to a container the requests by which an autoscaler measures its usage, from the
// defaults. Without them the autoscaler cannot compute the usage of the pods, and never scales
// them.
func Measured(c *corev1.Container, a *appsv1.Autoscaling, defaults corev1.ResourceList) {
	for _, t := range targets(a) {
		if t.Resource == nil {
			continue
		}
		of := t.Resource.Name
		_, isRequested := c.Resources.Requests[of]
		// The API server sets a missing request to the limit.
		if _, isLimited := c.Resources.Limits[of]; isRequested || isLimited {
			continue
		}
		requests := corev1.ResourceList{of: defaults[of]}
		maps.Copy(requests, c.Resources.Requests)
		c.Resources.Requests = requests
	}
}

// CheckAutoscaling returns an error for bounds or a target that no autoscaler
// can have. prefix is the path of the tier, like "frontend.".
func CheckAutoscaling(prefix string, a *appsv1.Autoscaling) error {
	if a.MinReplicas != nil && *a.MinReplicas > a.MaxReplicas {
		return fmt.Errorf("%sautoscaling.minReplicas must not be more than %sautoscaling.maxReplicas: %d, %d", prefix, prefix, *a.MinReplicas, a.MaxReplicas)
	}
	for _, m := range a.Metrics {
		if m.Type != string(autoscalingv2.PodsMetricSourceType) && m.Type != string(autoscalingv2.ExternalMetricSourceType) {
			return fmt.Errorf("%sautoscaling.metrics %s: type must be Pods or External, is %q", prefix, m.Name, m.Type)
		}
		if q, err := resource.ParseQuantity(m.AverageValue); err != nil || q.Sign() <= 0 {
			return fmt.Errorf("%sautoscaling.metrics %s: averageValue must be a quantity above zero, like 100 or 500m, is %q", prefix, m.Name, m.AverageValue)
		}
	}
	return nil
}
