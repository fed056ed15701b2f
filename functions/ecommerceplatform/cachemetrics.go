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
	keyMetricsPassword = "metrics-password"
	keyMetricsConf     = "metrics.conf"

	cacheMetrics     = "metrics"
	cacheMetricsPort = 9121

	// cacheSocket is the socket at which Redis serves the containers of its own pod, without TLS.
	cacheSocket = "/tmp/redis.sock"
)

// monitored reports whether the metrics of the claim's components are exported.
func (s *shop) monitored() bool {
	m := s.spec.Monitoring
	return m == nil || m.Enabled == nil || *m.Enabled
}

// metricsConf returns the definition of a Redis user that may read statistics, but no
// keys and no settings: a client of the exporter can make it connect to another server
// with this user's password.
func (s *shop) metricsConf() string {
	return fmt.Sprintf("user %s reset on >%s +ping +info +client|setname +slowlog|len +latency|latest\n", cacheMetrics, s.metricsPassword)
}

// metricsArgs returns the arguments by which Redis listens on cacheSocket and loads that user. They
// are not part of redis.conf in the Secret, so that a change of them does not replace the clients.
func (s *shop) metricsArgs() []string {
	if !s.monitored() {
		return nil
	}
	return []string{"--unixsocket", cacheSocket, "--unixsocketperm", "700", "--include", path.Join(cacheConfDir, keyMetricsConf)}
}

// cacheExporter returns the container that exports Redis' statistics to Prometheus
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
			// Settings are not exported: they contain the password of all other clients.
			{Name: "REDIS_EXPORTER_CONFIG_COMMAND", Value: "-"},
		},
		Ports:           []corev1.ContainerPort{{Name: cacheMetrics, ContainerPort: cacheMetricsPort}},
		Resources:       build.Resources("10m", "16Mi", "64Mi"),
		SecurityContext: build.ContainerSecurity(),
		VolumeMounts:    []corev1.VolumeMount{build.TmpMount()},
	}
}

// cachePodMonitor returns the PodMonitor by which Prometheus reads the exporter.
func (s *shop) cachePodMonitor() *monitoringv1.PodMonitor {
	return &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: s.Meta(cache, cacheApp),
		Spec: monitoringv1.PodMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: s.Selector(cache)},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{{
				Port:           new(cacheMetrics),
				RelabelConfigs: []monitoringv1.RelabelConfig{build.RelabelClaim("ecommerceplatform")},
			}},
		},
	}
}
