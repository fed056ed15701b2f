package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPolicyCleanup(t *testing.T) {
	cases := map[string]struct{ reason, saved, want string }{
		"Nothing": {
			reason: "A table without rules of policies is left alone.",
			saved:  "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -i docker0 -j ACCEPT\nCOMMIT\n",
		},
		"All": {
			reason: "Chains go with what leads to them; those of others stay.",
			saved: `*filter
:INPUT ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-POD-FW-AAAA - [0:0]
:KUBE-ROUTER-INPUT - [0:0]
-A INPUT -m comment --comment "kube-router netpol - 4IA2" -j KUBE-ROUTER-INPUT
-A INPUT -j DOCKER
-A KUBE-ROUTER-INPUT -d 10.96.0.0/12 -j RETURN
-A KUBE-ROUTER-INPUT -s 10.88.0.2/32 -j KUBE-POD-FW-AAAA
-A KUBE-POD-FW-AAAA -j REJECT --reject-with icmp-port-unreachable
COMMIT
`,
			want: `*filter
-D INPUT -m comment --comment "kube-router netpol - 4IA2" -j KUBE-ROUTER-INPUT
-F KUBE-POD-FW-AAAA
-F KUBE-ROUTER-INPUT
-X KUBE-POD-FW-AAAA
-X KUBE-ROUTER-INPUT
COMMIT
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, policyCleanup(tc.saved)); diff != "" {
				t.Errorf("%s\npolicyCleanup(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
