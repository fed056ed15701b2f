package databasecluster

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/internal/build"
)

// networkPolicy admits the claim's clients to PostgreSQL, and the servers to
// each other.
func (d *cluster) networkPolicy() *networkingv1.NetworkPolicy {
	return build.NetworkPolicy(d.Scope, postgresql, appName,
		build.Admit{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.spec.Clients)}, Ports: []int32{port}},
		build.Admit{From: []networkingv1.NetworkPolicyPeer{build.Pods(d.Selector(postgresql))}, Ports: []int32{port, apiPort}},
	)
}
