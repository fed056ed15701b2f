package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPluginCleanup(t *testing.T) {
	cases := map[string]struct {
		reason string
		saved  string
		want   string
	}{
		"Nothing": {
			reason: "A table without our rules is left alone.",
			saved:  "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE\nCOMMIT\n",
		},
		"Masquerade": {
			reason: "A pod's chain goes with the rule that leads to it; its own rules need no deletion.",
			saved: `*nat
:POSTROUTING ACCEPT [0:0]
:CNI-aaaa - [0:0]
-A POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"storeplane\" id: \"1\"" -j CNI-aaaa
-A CNI-aaaa -d 10.88.0.0/16 -m comment --comment "name: \"storeplane\" id: \"1\"" -j ACCEPT
COMMIT
`,
			want: `*nat
-D POSTROUTING -s 10.88.0.2/32 -m comment --comment "name: \"storeplane\" id: \"1\"" -j CNI-aaaa
-F CNI-aaaa
-X CNI-aaaa
COMMIT
`,
		},
		"HostPort": {
			reason: "The chains that all host ports share go with the last of them.",
			saved: `*nat
:PREROUTING ACCEPT [0:0]
:CNI-DN-aaaa - [0:0]
:CNI-HOSTPORT-DNAT - [0:0]
:CNI-HOSTPORT-SETMARK - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-DN-aaaa -s 127.0.0.1/32 -p tcp -j CNI-HOSTPORT-SETMARK
-A CNI-HOSTPORT-DNAT -m comment --comment "dnat name: \"storeplane\" id: \"1\"" -j CNI-DN-aaaa
COMMIT
`,
			want: `*nat
-D CNI-HOSTPORT-DNAT -m comment --comment "dnat name: \"storeplane\" id: \"1\"" -j CNI-DN-aaaa
-D PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-F CNI-DN-aaaa
-F CNI-HOSTPORT-DNAT
-F CNI-HOSTPORT-SETMARK
-X CNI-DN-aaaa
-X CNI-HOSTPORT-DNAT
-X CNI-HOSTPORT-SETMARK
COMMIT
`,
		},
		"OtherNetwork": {
			reason: "What another network has, and the chains it shares with ours, stay.",
			saved: `*nat
:CNI-HOSTPORT-DNAT - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT
-A CNI-HOSTPORT-DNAT -m comment --comment "dnat name: \"storeplane\" id: \"1\"" -j CNI-DN-aaaa
-A CNI-HOSTPORT-DNAT -m comment --comment "dnat name: \"other\" id: \"2\"" -j CNI-DN-bbbb
COMMIT
`,
			want: `*nat
-D CNI-HOSTPORT-DNAT -m comment --comment "dnat name: \"storeplane\" id: \"1\"" -j CNI-DN-aaaa
-F CNI-DN-aaaa
-X CNI-DN-aaaa
COMMIT
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, pluginCleanup(tc.saved, "storeplane")); diff != "" {
				t.Errorf("\n%s\npluginCleanup(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestHasRules(t *testing.T) {
	cases := map[string]struct {
		reason string
		table  string
		want   bool
	}{
		"Bare": {
			reason: "Chains and their policies alone do nothing.",
			table:  "table ip nat {\n\tchain POSTROUTING {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t}\n}\n",
		},
		"Rule": {
			reason: "A rule belongs to another program.",
			table:  "table ip nat {\n\tchain POSTROUTING {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n\t\tmasquerade\n\t}\n}\n",
			want:   true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hasRules(tc.table)); diff != "" {
				t.Errorf("\n%s\nhasRules(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
