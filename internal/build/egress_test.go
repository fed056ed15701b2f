package build

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
)

// written returns each rule as text: its peers and its ports.
func written(rules []networkingv1.NetworkPolicyEgressRule) string {
	var out []string
	for _, r := range rules {
		var to, at []string
		for _, p := range r.To {
			switch {
			case p.IPBlock != nil:
				to = append(to, strings.Join(append([]string{p.IPBlock.CIDR}, p.IPBlock.Except...), "-"))
			case p.NamespaceSelector != nil:
				to = append(to, "namespace "+p.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
			default:
				to = append(to, "pods")
			}
		}
		for _, p := range r.Ports {
			at = append(at, p.Port.String())
		}
		out = append(out, fmt.Sprintf("%s:%s", strings.Join(to, " "), strings.Join(at, ",")))
	}
	return strings.Join(out, "; ")
}

func TestToHosts(t *testing.T) {
	cases := map[string]struct {
		reason string
		hosts  []string
		want   string
	}{
		"External":  {reason: "A name outside is its port.", hosts: []string{"db.eu.example.com:6432"}, want: ":6432"},
		"Default":   {reason: "A host without a port has the engine's.", hosts: []string{"db.eu.example.com"}, want: ":5432"},
		"Addresses": {reason: "An address is no Service.", hosts: []string{"10.0.0.7:5433", "[fd00::7]:5434", "fd00::8"}, want: ":5432,5433,5434"},
		"Service":   {reason: "A Service leads to pods of its namespace, at a port of their own.", hosts: []string{"db.data.svc:5433"}, want: ":5433; namespace data:"},
		"Domain":    {reason: "The cluster's domain may follow.", hosts: []string{"db.data.svc.corp.example."}, want: ":5432; namespace data:"},
		"Headless":  {reason: "The name of a pod may come first.", hosts: []string{"db-0.db.data.svc.cluster.local"}, want: ":5432; namespace data:"},
		"Short":     {reason: "A name of one word is of the same namespace, one of two may be of another.", hosts: []string{"db", "db.data"}, want: ":5432; namespace data:; pods:"},
		"Own":       {reason: "The same namespace is no selector of namespaces.", hosts: []string{"db.shop.svc"}, want: ":5432; pods:"},
		"Twice":     {reason: "What is the same is said once.", hosts: []string{"a.data.svc:27017", "b.data.svc:27017"}, want: ":27017; namespace data:"},
		"Nonsense":  {reason: "A port that is none is the engine's.", hosts: []string{"db.eu.example.com:x", "db.eu.example.com:70000"}, want: ":5432"},
		"No label":  {reason: "What can be no namespace is none.", hosts: []string{"db.-x", "db.data\n", "db." + strings.Repeat("x", 64)}, want: ":5432"},
		"Metadata":  {reason: "A port of metadata services opens the others' alone.", hosts: []string{"db.eu.example.com:80", "db.eu.example.com:81"}, want: ":81; 0.0.0.0/0-169.254.0.0/16 ::/0-fd00:ec2::/32:80"},
		"None":      {reason: "No host opens nothing.", want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, written(ToHosts("shop", 5432, tc.hosts...))); diff != "" {
				t.Errorf("\n%s\nToHosts(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestToStore(t *testing.T) {
	metadata := written([]networkingv1.NetworkPolicyEgressRule{ToMetadata()})
	cases := map[string]struct {
		reason, endpoint string
		authenticates    bool
		want             string
	}{
		"Cloud":    {reason: "A cloud's own endpoint is HTTPS.", authenticates: true, want: ":443"},
		"Identity": {reason: "Without a Secret the cloud is asked for an identity.", want: ":443; " + metadata},
		"Endpoint": {reason: "An endpoint is its host, and nothing else.", endpoint: "https://minio.example.com:9000", authenticates: true, want: ":9000"},
		"Inside":   {reason: "One in the cluster leads to pods.", endpoint: "https://minio.store.svc", authenticates: true, want: ":443; namespace store:"},
		"Plain":    {reason: "One without TLS has another port.", endpoint: "http://10.0.0.7", authenticates: true, want: "0.0.0.0/0-169.254.0.0/16 ::/0-fd00:ec2::/32:80"},
		"Both":     {reason: "An identity may be asked for at an endpoint, too.", endpoint: "https://10.0.0.7:9000", want: ":443; " + metadata + "; :9000"},
		"No URL":   {reason: "What is no URL opens nothing.", endpoint: "minio:9000", authenticates: true, want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, written(ToStore("shop", tc.endpoint, tc.authenticates))); diff != "" {
				t.Errorf("\n%s\nToStore(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestToDNSProtocols: DNS is allowed over UDP and TCP, as a port without a protocol would only
// allow TCP and most queries use UDP.
func TestToDNSProtocols(t *testing.T) {
	got := map[string]int{}
	for _, p := range ToDNS().Ports {
		got[string(*p.Protocol)]++
	}
	if diff := cmp.Diff(map[string]int{"UDP": len(dnsPorts), "TCP": len(dnsPorts)}, got); diff != "" {
		t.Errorf("ToDNS(): -want, +got:\n%s", diff)
	}
}

// TestEgressCloses: a policy of type Egress without rules allows no connections.
func TestEgressCloses(t *testing.T) {
	np := Egress(&networkingv1.NetworkPolicy{})
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeEgress}, np.Spec.PolicyTypes); diff != "" {
		t.Errorf("Egress(): -want, +got:\n%s", diff)
	}
}
