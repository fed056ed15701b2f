package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/label"
)

func TestEgress(t *testing.T) {
	const elsewhere = "https://store.example.com:9000"
	servers := []networkingv1.NetworkPolicyEgressRule{build.ToPods(map[string]string{label.Instance: "orders", label.Component: "postgresql"}, 5432)}
	cases := map[string]struct {
		reason    string
		got, want []networkingv1.NetworkPolicyEgressRule
	}{
		"Credentials": {reason: "The store alone.", got: Store{Destination: backupv1.Destination{Type: backupv1.S3, Endpoint: elsewhere}, Authenticates: true}.Egress("shop"), want: build.ToStore("shop", elsewhere, true)},
		"Identity":    {reason: "And what says who the pod is, also beside a Secret with an authority.", got: Store{Destination: backupv1.Destination{Type: backupv1.S3}, Secret: "authority"}.Egress("shop"), want: build.ToStore("shop", "", false)},
		"Volume":      {reason: "A volume is mounted.", got: Store{Destination: backupv1.Destination{Type: backupv1.Volume}}.Egress("shop")},
		"Unknown":     {reason: "What is not known is not reached.", got: Store{}.Egress("shop")},
		"Hosts":       {reason: "Hosts at their ports, or the engine's.", got: Source{Hosts: []string{"maria.example.com"}}.Egress("shop", backupv1.MySQL), want: build.ToHosts("shop", 3306, "maria.example.com")},
		"Cluster":     {reason: "Of a DatabaseCluster its servers, and no other pod of the namespace.", got: Source{Cluster: "orders"}.Egress("shop", backupv1.PostgreSQL), want: servers},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNetworkPolicyCloses: a policy without rules denies all traffic, because it has both policy
// types.
func TestNetworkPolicyCloses(t *testing.T) {
	np := NetworkPolicy(metav1.ObjectMeta{}, metav1.LabelSelector{})
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}, np.Spec.PolicyTypes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
