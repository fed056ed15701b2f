package webapp

import (
	"cmp"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

const (
	metricsPortName    = "metrics"
	defaultMetricsPath = "/metrics"
)

// isScraped reports whether the claim has metrics and the cluster has PodMonitors.
func (a *app) isScraped(c *compose.Claim) bool {
	return a.spec.Metrics != nil && c.HasKind(build.PodMonitorSchema, monitor)
}

func (a *app) metricsPort() int32 {
	if m := a.spec.Metrics; m.Port != nil {
		return *m.Port
	}
	return *a.port()
}

// metricsPortOf returns the name of the container port that serves the metrics,
// which may be a sidecar's.
func (a *app) metricsPortOf() string {
	port := a.metricsPort()
	if port == *a.port() {
		return portName
	}
	for _, s := range a.spec.Sidecars {
		if s.Port != nil && *s.Port == port {
			return s.Name
		}
	}
	return metricsPortName
}

// ports returns the ports of the application's container.
func (a *app) ports() []corev1.ContainerPort {
	out := []corev1.ContainerPort{{Name: portName, ContainerPort: *a.port()}}
	if a.spec.Metrics != nil && a.metricsPortOf() == metricsPortName {
		out = append(out, corev1.ContainerPort{Name: metricsPortName, ContainerPort: a.metricsPort()})
	}
	return out
}

// podMonitor returns the PodMonitor by which Prometheus reads the metrics of the
// pods that serve requests.
func (a *app) podMonitor() *monitoringv1.PodMonitor {
	return &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: a.Meta(web, a.name()),
		Spec: monitoringv1.PodMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: a.Selector(web)},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{{
				Port:           new(a.metricsPortOf()),
				Path:           cmp.Or(a.spec.Metrics.Path, defaultMetricsPath),
				RelabelConfigs: []monitoringv1.RelabelConfig{build.RelabelClaim("webapp")},
			}},
		},
	}
}
