package webapp

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/internal/build"
)

// networkPolicy admits the claim's clients, and where there is an ingress its
// controller.
func (a *app) networkPolicy() *networkingv1.NetworkPolicy {
	from := []networkingv1.NetworkPolicyPeer{build.Pods(a.spec.Clients)}
	if a.spec.Ingress != nil {
		from = append(from, build.Namespace(a.settings.Ingress.Namespace))
	}
	return build.NetworkPolicy(a.Scope, web, a.name(), build.Admit{From: from, Ports: []int32{*a.port()}})
}
