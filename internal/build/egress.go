package build

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A NetworkPolicy applies to the port at which a connection ends, behind the Service: port 443 of
// the API server's Service is 6443 on most clusters, and port 53 of the DNS server's may be any of
// these where the DNS server runs without the right to bind a low port.
var (
	dnsPorts = []int32{53, 1053, 5353, 8053}
	apiPorts = []int32{443, 6443, 8443, 16443}
)

// metadataAddresses are those at which clouds give pods their identity: the instance metadata
// service, and the services for pods of EKS, ECS and GKE.
//
// https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html
// https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity
var metadataAddresses = []string{"169.254.169.254/32", "169.254.169.252/32", "169.254.170.2/32", "169.254.170.23/32", "fd00:ec2::254/128", "fd00:ec2::23/128"}

// metadataPorts are 80 and the ports of GKE's services.
var metadataPorts = []int32{80, 987, 988}

// Egress denies the pods of a policy all connections that they open, except the given ones. Without
// any they can open none, as is right for a server that only answers.
func Egress(np *networkingv1.NetworkPolicy, to ...networkingv1.NetworkPolicyEgressRule) *networkingv1.NetworkPolicy {
	np.Spec.PolicyTypes = append(np.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	np.Spec.Egress = append(np.Spec.Egress, to...)
	return np
}

// ToDNS allows names to be resolved, by any server: a node-local DNS server has no labels to
// select.
func ToDNS() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{Ports: append(ports(corev1.ProtocolUDP, dnsPorts...), ports(corev1.ProtocolTCP, dnsPorts...)...)}
}

// ToAPIServer allows connections to the API server. It has no labels to select either, and its
// address differs from cluster to cluster.
func ToAPIServer() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{Ports: ports(corev1.ProtocolTCP, apiPorts...)}
}

// ToPods allows connections to pods of the same namespace with all of these labels, at the given
// ports or, without any, at all ports.
func ToPods(labels map[string]string, at ...int32) networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{Pods(labels)}, Ports: ports(corev1.ProtocolTCP, at...)}
}

// ToMetadata allows connections to the services that give pods an identity of the cloud. They give
// the node's identity as well, so only pods without credentials of their own should have this rule.
func ToMetadata() networkingv1.NetworkPolicyEgressRule {
	out := networkingv1.NetworkPolicyEgressRule{Ports: ports(corev1.ProtocolTCP, metadataPorts...)}
	for _, a := range metadataAddresses {
		out.To = append(out.To, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: a}})
	}
	return out
}

// ToStore allows connections from a namespace to an object store: to its endpoint, or a cloud's own
// if endpoint is "". Pods that have no credentials to authenticate with get an identity from the
// cloud, at its metadata service or at one behind HTTPS.
func ToStore(namespace, endpoint string, authenticates bool) []networkingv1.NetworkPolicyEgressRule {
	cloud := networkingv1.NetworkPolicyEgressRule{Ports: ports(corev1.ProtocolTCP, 443)}
	var out []networkingv1.NetworkPolicyEgressRule
	if endpoint == "" || !authenticates {
		out = append(out, cloud)
	}
	if !authenticates {
		out = append(out, ToMetadata())
	}
	// An endpoint that is no URL is refused elsewhere, and allows nothing here.
	if u, err := url.Parse(endpoint); err == nil && u.Hostname() != "" {
		port := int32(443)
		if u.Scheme == "http" {
			port = 80
		}
		out = append(out, ToHosts(namespace, port, u.Host)...)
	}
	return out
}

// ToHosts allows connections from a namespace to hosts, each with or without a port. Policies have
// addresses and no names: every host is reachable at the ports of these. One that may be a Service
// is also reachable as the pods of the Service's namespace, at all ports, since the port behind a
// Service is not known.
func ToHosts(namespace string, port int32, hosts ...string) []networkingv1.NetworkPolicyEgressRule {
	var to []int32
	var namespaces []string
	for _, h := range hosts {
		name, at := splitHost(h, port)
		to = append(to, at)
		if ns := serviceNamespace(namespace, name); ns != "" {
			namespaces = append(namespaces, ns)
		}
	}
	slices.Sort(to)
	slices.Sort(namespaces)
	var out []networkingv1.NetworkPolicyEgressRule
	isMetadata := func(port int32) bool { return slices.Contains(metadataPorts, port) }
	if others := slices.DeleteFunc(slices.Compact(slices.Clone(to)), isMetadata); len(others) > 0 {
		out = append(out, networkingv1.NetworkPolicyEgressRule{Ports: ports(corev1.ProtocolTCP, others...)})
	}
	for _, p := range slices.Compact(to) {
		if isMetadata(p) {
			out = append(out, networkingv1.NetworkPolicyEgressRule{To: notMetadata(), Ports: ports(corev1.ProtocolTCP, p)})
		}
	}
	for _, ns := range slices.Compact(namespaces) {
		peer := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
		if ns != namespace {
			peer = Namespace(ns)
		}
		out = append(out, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{peer}})
	}
	return out
}

// notMetadata are all addresses but those of metadata services: a host at one of their ports does not
// open them.
func notMetadata() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: []string{"169.254.0.0/16"}}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: []string{"fd00:ec2::/32"}}},
	}
}

// splitHost splits a host into its name and its port, which defaults to port.
func splitHost(host string, port int32) (string, int32) {
	name, p, err := net.SplitHostPort(host)
	if err != nil {
		return strings.Trim(host, "[]"), port
	}
	if n, err := strconv.ParseUint(p, 10, 16); err == nil && n > 0 {
		port = int32(n)
	}
	return name, port
}

// serviceNamespace returns the namespace of a host that may be a Service, as a pod of a namespace
// resolves it: name, name.namespace, or name.namespace.svc with or without the cluster's domain. It
// is "" for any other host.
//
// https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/
func serviceNamespace(namespace, host string) string {
	out := namespaceOf(namespace, host)
	if len(validation.IsDNS1123Label(out)) > 0 {
		return ""
	}
	return out
}

func namespaceOf(namespace, host string) string {
	if _, err := netip.ParseAddr(host); err == nil {
		return ""
	}
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(host), "."), ".")
	if i := slices.Index(labels, "svc"); i >= 2 {
		// The name of a pod of a headless Service has one more label in front.
		return labels[i-1]
	}
	switch len(labels) {
	case 1:
		return namespace
	case 2:
		return labels[1]
	}
	return ""
}

func ports(protocol corev1.Protocol, numbers ...int32) []networkingv1.NetworkPolicyPort {
	var out []networkingv1.NetworkPolicyPort
	for _, n := range numbers {
		out = append(out, networkingv1.NetworkPolicyPort{Protocol: new(protocol), Port: new(intstr.FromInt32(n))})
	}
	return out
}
