package webapp

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/internal/build"
)

// networkPolicy admits the claim's clients, where there is an ingress its
// controller, and whoever scrapes to the metrics.
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
