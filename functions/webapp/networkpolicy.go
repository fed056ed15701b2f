package webapp

import (
	batchv1 "k8s.io/api/batch/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/label"
)

// networkPolicy admits the claim's clients and, with an ingress, the ingress controller to the
// application, and the monitoring namespace to the metrics.
func (a *app) networkPolicy() *networkingv1.NetworkPolicy {
	from := []networkingv1.NetworkPolicyPeer{build.Pods(a.spec.Clients)}
	if a.spec.Ingress != nil {
		from = append(from, build.Namespace(a.settings.Ingress.Namespace))
	}
	ways := []build.Admit{{From: from, Ports: []int32{*a.port()}}}
	if a.spec.Metrics != nil {
		ways = append(ways, build.Scrapers(a.settings.Monitoring.Namespace, a.metricsPort())...)
	}
	return build.NetworkPolicy(a.Scope, web, a.name(), ways...)
}

// hasJobs reports whether pods of Jobs run or will run.
func (a *app) hasJobs() bool {
	return a.spec.Migration != nil || len(a.spec.CronJobs) > 0 || len(a.live.superseded) > 0
}

// jobsPolicy denies all connections to the pods of Jobs, whose sidecars may listen. It selects
// them by the label that Kubernetes sets on them, since a run continues for a time after its
// cronJob was removed from the claim.
func (a *app) jobsPolicy() *networkingv1.NetworkPolicy {
	np := build.NetworkPolicy(a.Scope, jobs, a.name())
	np.Spec.PodSelector = metav1.LabelSelector{
		MatchLabels:      map[string]string{label.Name: a.name(), label.Instance: a.Claim},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: batchv1.JobNameLabel, Operator: metav1.LabelSelectorOpExists}},
	}
	return np
}
