package build

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Admit is a rule that admits connections to a component's pods.
type Admit struct {
	// From names the peers. None admits all.
	From []networkingv1.NetworkPolicyPeer
	// Ports by number.
	Ports []int32
}

// Scrapers returns the rule that admits connections to metrics: from the namespace that the
// settings name. Without one it returns none, since metrics reveal what a component is and does.
func Scrapers(namespace string, ports ...int32) []Admit {
	if namespace == "" {
		return nil
	}
	return []Admit{{From: []networkingv1.NetworkPolicyPeer{Namespace(namespace)}, Ports: ports}}
}

// NetworkPolicy denies all connections to a component's pods, except those of the given rules.
func NetworkPolicy(s Scope, component, app string, ways ...Admit) *networkingv1.NetworkPolicy {
	np := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: s.Meta(component, app),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: s.Selector(component)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		},
	}
	for _, w := range ways {
		rule := networkingv1.NetworkPolicyIngressRule{From: w.From}
		for _, p := range w.Ports {
			rule.Ports = append(rule.Ports, networkingv1.NetworkPolicyPort{Port: new(intstr.FromInt32(p))})
		}
		np.Spec.Ingress = append(np.Spec.Ingress, rule)
	}
	return np
}

// Pods returns the pods of the same namespace with all of these labels. None means all pods.
func Pods(labels map[string]string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

// Namespace returns the namespace of a name; "" means all namespaces.
func Namespace(name string) networkingv1.NetworkPolicyPeer {
	sel := &metav1.LabelSelector{}
	if name != "" {
		sel.MatchLabels = map[string]string{"kubernetes.io/metadata.name": name}
	}
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: sel}
}
