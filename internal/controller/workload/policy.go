package workload

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
)

// NetworkPolicy returns the policy of pods. It allows no connection to them, since a throw-away
// server is for its own pod only, and from them only the connections that the rules in to allow.
func NetworkPolicy(meta metav1.ObjectMeta, of metav1.LabelSelector, to ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: meta,
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: of,
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      to,
		},
	}
}

// Egress returns the rules by which pods of a namespace reach the store. A volume needs none, since
// it is mounted.
func (s Store) Egress(namespace string) []networkingv1.NetworkPolicyEgressRule {
	if s.Destination.Type == backupv1.Volume || s.Destination.Type == "" {
		return nil
	}
	return build.ToStore(namespace, s.Destination.Endpoint, s.Authenticates)
}

// Egress returns the rules by which pods of a namespace reach the servers of a database. Servers
// that a replica set or a DNS record leads to must have the ports of the named hosts, or the
// engine's.
func (s Source) Egress(namespace string, engine backupv1.Engine) []networkingv1.NetworkPolicyEgressRule {
	if s.Cluster != "" {
		servers := build.Scope{Claim: s.Cluster}
		return []networkingv1.NetworkPolicyEgressRule{build.ToPods(servers.Selector(string(engine)), backup.DefaultPorts[engine])}
	}
	return build.ToHosts(namespace, backup.DefaultPorts[engine], s.Hosts...)
}
