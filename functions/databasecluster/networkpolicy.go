package databasecluster

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// networkPolicy admits the claim's clients and the pods of Backups and Restores to the servers, the
// servers to each other, the pods that make physical backups to pgBackRest, and the monitoring namespace to the metrics. Patroni's metrics share
// a port with its API, which clients without a certificate may read and not change.
func (d *cluster) networkPolicy() *networkingv1.NetworkPolicy {
	ways := []build.Admit{
		{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.spec.Clients)}, Ports: []int32{d.traits.Port}},
		{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.Selector(d.server))}, Ports: append([]int32{d.traits.Port}, d.apis()...)},
	}
	if len(d.spec.Clients) > 0 {
		// Pods of Backups and Restores do not have the labels of the clients.
		ways = append(ways, build.Admit{From: workers(), Ports: []int32{d.traits.Port}})
	}
	if d.archivesLogs() {
		ways = append(ways, build.Admit{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.Selector(logArchive))}, Ports: []int32{d.traits.Port}})
	}
	if d.archives() {
		ways = append(ways, build.Admit{From: []networkingv1.NetworkPolicyPeer{d.backupPods()}, Ports: []int32{pgbackrest.Port}})
	}
	if d.monitored() {
		ways = append(ways, build.Scrapers(d.settings.Monitoring.Namespace, append([]int32{d.traits.MetricsPort}, d.apis()...)...)...)
	}
	return build.Egress(build.NetworkPolicy(d.Scope, d.server, d.server, ways...), d.serverEgress()...)
}

// workers selects the pods of the namespace's Backups and Restores.
func workers() []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for _, key := range []string{backupv1.BackupLabel, backupv1.RestoreLabel} {
		out = append(out, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}},
		}})
	}
	return out
}

// apis returns the ports of the servers' own APIs.
func (d *inputs) apis() []int32 {
	ports := []int32{d.traits.Supervisor.Number}
	if d.traits.Manager.Number != 0 {
		ports = append(ports, d.traits.Manager.Number)
	}
	return ports
}

// serverEgress returns what the servers may connect to: DNS, the API server, which stores the
// leader lock, each other, and the place of the backups. Policies add up: for a foreign table or a
// subscription, a policy of the namespace can allow more.
func (d *cluster) serverEgress() []networkingv1.NetworkPolicyEgressRule {
	out := []networkingv1.NetworkPolicyEgressRule{build.ToDNS(), build.ToAPIServer(), build.ToPods(d.Selector(d.server))}
	if d.archives() {
		out = append(out, d.storeEgress(d.backup.destination, d.servedBy(), d.backup.authenticates)...)
	}
	if o := d.origin; o != nil {
		out = append(out, d.storeEgress(o.restore.Destination, source, o.authenticates)...)
	}
	return out
}

// backupPolicy lets the pods that make backups reach the servers and the store, and denies all
// connections to them. A volume they mount, so it needs no rule.
func (d *cluster) backupPolicy() *networkingv1.NetworkPolicy {
	to := []networkingv1.NetworkPolicyEgressRule{build.ToDNS(), build.ToPods(d.Selector(d.server), pgbackrest.Port)}
	if !d.backup.isVolume() {
		to = append(to, build.ToStore(d.Namespace, d.backup.destination.Endpoint, d.backup.authenticates)...)
	}
	return build.Egress(build.NetworkPolicy(d.Scope, backups, d.server), to...)
}

// storeEgress returns the rules by which backups are reached: in a store, or on a volume
// that a component serves.
func (d *cluster) storeEgress(at backupv1.Destination, component string, authenticates bool) []networkingv1.NetworkPolicyEgressRule {
	if at.Type == backupv1.Volume {
		return []networkingv1.NetworkPolicyEgressRule{build.ToPods(d.Selector(component), pgbackrest.Port)}
	}
	return build.ToStore(d.Namespace, at.Endpoint, authenticates)
}
