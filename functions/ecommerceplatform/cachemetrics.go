package ecommerceplatform

import (
	"fmt"
	"path"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
)

const (
	// podMonitorSchema is the name under which the Composition asks whether the cluster has
	// PodMonitors.
	podMonitorSchema = "podmonitor"

	keyMetricsPassword = "metrics-password"
	keyMetricsConf     = "metrics.conf"

	cacheMetrics     = "metrics"
	cacheMetricsPort = 9121

	// cacheSocket is where Redis answers the containers of its own pod, without TLS.
	cacheSocket = "/tmp/redis.sock"
)

// monitored tells whether the shop's metrics are exported.
func (s *shop) monitored() bool {
	m := s.spec.Monitoring
	return m == nil || m.Enabled == nil || *m.Enabled
}

// metricsConf is a Redis user that reads statistics, no key and no setting: a client of the
// exporter may have it connect to another server, with that user's password.
func (s *shop) metricsConf() string {
	return fmt.Sprintf("user %s reset on >%s +ping +info +client|setname +slowlog|len +latency|latest\n", cacheMetrics, s.metricsPassword)
}

// metricsArgs have Redis listen to its own pod, and know that user. They are of the pod, and not of
// the Secret's redis.conf: clients are not replaced for them.
func (s *shop) metricsArgs() []string {
	if !s.monitored() {
		return nil
	}
	return []string{"--unixsocket", cacheSocket, "--unixsocketperm", "700", "--include", path.Join(cacheConfDir, keyMetricsConf)}
}

// cacheExporter tells Prometheus what Redis says about itself
// (https://github.com/oliver006/redis_exporter).
func (s *shop) cacheExporter() corev1.Container {
	return corev1.Container{
		Name:    cacheMetrics,
		Image:   s.settings.Image("redis:" + redisTag),
		Command: []string{"prometheus-redis-exporter"},
		Args:    []string{fmt.Sprintf("-web.listen-address=:%d", cacheMetricsPort), "-redis-only-metrics"},
		Env: []corev1.EnvVar{
			{Name: "REDIS_ADDR", Value: "unix://" + cacheSocket},
			{Name: "REDIS_USER", Value: cacheMetrics},
			build.FromSecret("REDIS_PASSWORD", s.Name(cache), keyMetricsPassword),
			// Settings have the password of everybody else.
			{Name: "REDIS_EXPORTER_CONFIG_COMMAND", Value: "-"},
		},
		Ports:           []corev1.ContainerPort{{Name: cacheMetrics, ContainerPort: cacheMetricsPort}},
		Resources:       build.Resources("10m", "16Mi", "64Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
	}
}

// cachePodMonitor has Prometheus read the exporter.
func (s *shop) cachePodMonitor() *monitoringv1.PodMonitor {
	return &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: s.Meta(cache, cacheApp),
		Spec: monitoringv1.PodMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: s.Selector(cache)},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{{
				Port: new(cacheMetrics),
				// Rules tell shops apart by it.
				RelabelConfigs: []monitoringv1.RelabelConfig{
					{SourceLabels: []monitoringv1.LabelName{"__meta_kubernetes_pod_label_app_kubernetes_io_instance"}, TargetLabel: "ecommerceplatform"},
				},
			}},
		},
	}
}
