package databasecluster

import (
	"strconv"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/label"
)

// monitored reports whether the servers' metrics are exported.
func (d *inputs) monitored() bool {
	m := d.spec.Monitoring
	return m == nil || m.Enabled == nil || *m.Enabled
}

// podMonitor returns the PodMonitor by which Prometheus reads all metrics of a server's pod.
func (d *cluster) podMonitor() *monitoringv1.PodMonitor {
	pm := &monitoringv1.PodMonitor{
		TypeMeta:   metav1.TypeMeta{APIVersion: monitoringv1.SchemeGroupVersion.String(), Kind: monitoringv1.PodMonitorsKind},
		ObjectMeta: d.Meta(d.server, d.server),
		Spec: monitoringv1.PodMonitorSpec{
			Selector: d.exporters(),
		},
	}
	// Alerts distinguish clusters by the first label, and expect a synchronous standby
	// where the second one is true.
	relabel := []monitoringv1.RelabelConfig{
		build.RelabelClaim("databasecluster"),
		{Replacement: new(strconv.FormatBool(d.synchronous())), TargetLabel: "synchronous"},
	}
	exporter := engine.ExporterContainer
	pm.Spec.PodMetricsEndpoints = []monitoringv1.PodMetricsEndpoint{{Port: &exporter, RelabelConfigs: relabel}}
	for _, name := range []string{d.traits.Supervisor.Name, d.traits.Manager.Name} {
		if name == "" {
			continue
		}
		pm.Spec.PodMetricsEndpoints = append(pm.Spec.PodMetricsEndpoints, monitoringv1.PodMetricsEndpoint{
			Port: &name, Scheme: "https", TLSConfig: d.scrapeTLS(), RelabelConfigs: relabel,
		})
	}
	return pm
}

// scrapeTLS returns the configuration by which Prometheus verifies the servers' APIs. It reads the
// authority in the ConfigMap: the Secret has private keys, which monitoring does not need.
func (d *cluster) scrapeTLS() *monitoringv1.SafeTLSConfig {
	return &monitoringv1.SafeTLSConfig{
		CA: monitoringv1.SecretOrConfigMap{ConfigMap: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: d.Name(d.server)}, Key: fileControl,
		}},
		ServerName: new(control.Name(d.Name(d.server), d.Namespace)),
	}
}

// exporters selects the servers, and the server of the backups' volume if there is one.
func (d *cluster) exporters() metav1.LabelSelector {
	labels := d.Selector(d.server)
	if !d.backup.isVolume() {
		return metav1.LabelSelector{MatchLabels: labels}
	}
	delete(labels, label.Component)
	return metav1.LabelSelector{MatchLabels: labels, MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: label.Component, Operator: metav1.LabelSelectorOpIn, Values: []string{d.server, d.servedBy()},
	}}}
}
