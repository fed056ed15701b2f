package databasecluster

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/internal/build"
)

// networkPolicy admits the claim's clients to PostgreSQL, the servers to each
// other, and whoever scrapes to the metrics. Patroni's own metrics share a port
// with its API, which answers anybody who only asks.
func (d *cluster) networkPolicy() *networkingv1.NetworkPolicy {
	ways := []build.Admit{
		{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.spec.Clients)}, Ports: []int32{d.traits.Port}},
		{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.Selector(d.server))}, Ports: []int32{d.traits.Port, d.traits.Supervisor.Number, instancePort}},
	}
	if d.backup.enabled {
		ways = append(ways, build.Admit{From: []networkingv1.NetworkPolicyPeer{d.backupPods()}, Ports: []int32{repositoryPort}})
	}
	if d.monitored() {
		ways = append(ways, build.Scrapers(d.settings.Monitoring.Namespace, d.traits.MetricsPort, d.traits.Supervisor.Number, instancePort)...)
	}
	return build.NetworkPolicy(d.Scope, d.server, d.server, ways...)
}
