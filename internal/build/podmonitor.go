package build

import (
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/storeplane/storeplane/internal/label"
)

// PodMonitorSchema is the name of the schema that Compositions require to find out whether the
// cluster has PodMonitors.
const PodMonitorSchema = "podmonitor"

// RelabelClaim sets a label of a pod's metrics to the name of its claim. Rules and dashboards
// distinguish the claims of a kind by such a label.
func RelabelClaim(target string) monitoringv1.RelabelConfig {
	instance := "__meta_kubernetes_pod_label_" + strings.NewReplacer(".", "_", "/", "_").Replace(label.Instance)
	return monitoringv1.RelabelConfig{SourceLabels: []monitoringv1.LabelName{monitoringv1.LabelName(instance)}, TargetLabel: target}
}
