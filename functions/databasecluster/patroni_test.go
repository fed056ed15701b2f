package databasecluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestPatroni: the configuration of Patroni agrees with the objects that are created.
func TestPatroni(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Edit(map[string]any{"work_mem": "16MB", "max_connections": "500"}, "parameters")
	c.Settle()
	p := patroni(t, c)
	if diff := cmp.Diff(dynamic(t, c), p["bootstrap"].(map[string]any)["dcs"]); diff != "" {
		t.Errorf("A server that cannot read what all servers share begins with the same: -shared, +its own:\n%s", diff)
	}
	pg := p["postgresql"].(map[string]any)
	want := map[string]any{
		"unix_socket_directories": "/var/run/postgresql", "password_encryption": "scram-sha-256",
		"archive_mode": "on", "archive_command": `/usr/local/bin/instance pgbackrest-push "%p"`,
		"ssl": "on", "ssl_cert_file": "/etc/storeplane/tls/tls.crt", "ssl_key_file": "/etc/storeplane/tls/tls.key",
	}
	if diff := cmp.Diff(want, pg["parameters"]); diff != "" {
		t.Errorf("A server's own parameters are those that are the same for every claim: -want, +got:\n%s", diff)
	}

	// Patroni finds its pods and its objects by these labels.
	k := p["kubernetes"].(map[string]any)
	labels := map[string]string{k["scope_label"].(string): p["scope"].(string)}
	for n, v := range k["labels"].(map[string]any) {
		labels[n] = v.(string)
	}
	for _, where := range []map[string]string{servers(t, c).Spec.Template.Labels, functionstest.As[corev1.ConfigMap](t, c.Observed["patroni-config"]).Labels, functionstest.As[corev1.ConfigMap](t, c.Observed["patroni-failover"]).Labels, functionstest.As[corev1.ConfigMap](t, c.Observed["patroni-sync"]).Labels} {
		for n, v := range labels {
			if where[n] != v {
				t.Errorf("Patroni looks for %s=%s, which is not among %v", n, v, where)
			}
		}
	}
	for component, suffix := range map[string]string{"patroni-config": "config", "patroni-failover": "failover", "patroni-sync": "sync"} {
		if got := functionstest.As[corev1.ConfigMap](t, c.Observed[component]).Name; got != p["scope"].(string)+"-"+suffix {
			t.Errorf("Patroni's %s is named %s-%s, got %s", suffix, p["scope"], suffix, got)
		}
		if data := functionstest.As[corev1.ConfigMap](t, c.Observed[component]).Data; len(data) > 0 {
			t.Errorf("%s is Patroni's to fill, got %v", component, data)
		}
	}
	// Patroni finds its objects by this label, and the ConfigMap that the instance managers write
	// is none of them.
	if got := functionstest.As[corev1.ConfigMap](t, c.Observed["instances"]).Labels[k["scope_label"].(string)]; got != "" {
		t.Errorf("What the managers write is none of Patroni's objects, got its label %q", got)
	}
	for component, value := range map[string]any{"primary": k["leader_label_value"], "replica": k["follower_label_value"]} {
		if got := functionstest.As[corev1.Service](t, c.Observed[component]).Spec.Selector[k["role_label"].(string)]; got != value {
			t.Errorf("Service %s selects role %s, Patroni writes %v", component, got, value)
		}
	}
}

// TestWaysIn: pg_hba.conf admits these connections, with these ways of authentication.
func TestWaysIn(t *testing.T) {
	ways := func(kind string) []any {
		return []any{
			"local all postgres,monitoring peer map=pod", "local all all scram-sha-256", "hostssl replication standby all scram-sha-256",
			"host all postgres,monitoring,standby all reject", kind + " all all all scram-sha-256",
		}
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   []any
	}{
		"Default":  {reason: "No client connects over the network in the clear, and the superuser not at all.", spec: functionstest.OneServer, want: ways("hostssl")},
		"Required": {reason: "So it is when the claim says so.", spec: "{size: 1, version: '17', tls: {required: true}}", want: ways("hostssl")},
		"Optional": {reason: "Clients may be let in in the clear, servers are not.", spec: "{size: 1, version: '17', tls: {required: false}}", want: ways("host")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Reconcile()
			pg := patroni(t, c)["postgresql"].(map[string]any)
			if diff := cmp.Diff(tc.want, pg["pg_hba"]); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			// Each server verifies the one that it follows.
			for _, u := range []string{"replication", "rewind"} {
				a := pg["authentication"].(map[string]any)[u].(map[string]any)
				if a["sslmode"] != "verify-ca" || a["sslrootcert"] != "/etc/patroni/peers.crt" {
					t.Errorf("%s\n%s: got %v", tc.reason, u, a)
				}
			}
		})
	}
}

// TestPatroniNames: a claim may have any name that the XRD allows, also one that YAML would read as
// another type than text.
func TestPatroniNames(t *testing.T) {
	for _, name := range []string{"orders", "no", "on", "yes", "off", "true", "false", "null", "n", "y", "e1", "a-1"} {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, strings.Replace(functionstest.DatabaseCluster(functionstest.OneServer), "name: orders", "name: '"+name+"'", 1))
			c.Reconcile()
			p := patroni(t, c)
			labels := p["kubernetes"].(map[string]any)["labels"].(map[string]any)
			if got := labels["app.kubernetes.io/instance"]; got != name {
				t.Errorf("Patroni looks for pods of instance %v (%T), want the text %q", got, got, name)
			}
			if got := p["scope"]; got != name+"-postgresql" {
				t.Errorf("want scope %s-postgresql, got %v", name, got)
			}
		})
	}
}

// TestMounts: the servers mount only the keys of each Secret that they need, and other users of the
// node cannot read them.
func TestMounts(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		tls    string
		backup bool
	}{
		"Own":     {reason: "The authority's key is not there: a server cannot make itself another certificate.", spec: functionstest.Production, tls: "orders-tls", backup: true},
		"Brought": {reason: "A Secret of the user's is mounted as it is.", spec: "{size: 1, version: '17', tls: {secretName: certs}}", tls: "certs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Others = append(c.Others, functionstest.CertificateSecret(t, nil))
			c.Settle()
			got := map[string][]string{}
			for _, v := range servers(t, c).Spec.Template.Spec.Volumes {
				mode := int32(0)
				add := func(name string, items []corev1.KeyToPath) {
					for _, i := range items {
						got[name] = append(got[name], i.Key)
					}
					slices.Sort(got[name])
				}
				switch {
				case v.Secret != nil:
					mode = *v.Secret.DefaultMode
					add(v.Secret.SecretName, v.Secret.Items)
				case v.Projected != nil:
					mode = *v.Projected.DefaultMode
					for _, s := range v.Projected.Sources {
						if s.Secret != nil {
							add(s.Secret.Name, s.Secret.Items)
						}
						if s.ConfigMap != nil {
							add(s.ConfigMap.Name, s.ConfigMap.Items)
						}
					}
				}
				if mode&0o007 != 0 {
					t.Errorf("%s\nvolume %s: want files that others cannot read, got %o", tc.reason, v.Name, mode)
				}
			}
			want := map[string][]string{"orders-postgresql": {"patroni.yaml", "peers.crt"}, "orders-credentials": {"credentials.yaml", "restapi-password"}, "kube-root-ca.crt": {"ca.crt"}, "orders-control-tls": {"ca.crt", "tls.crt", "tls.key"}, tc.tls: {"ca.crt", "tls.crt", "tls.key"}}
			if tc.backup {
				want["orders-postgresql"] = []string{"backup.json", "patroni.yaml", "peers.crt", "pgbackrest.conf"}
				want["orders-backup-tls"] = []string{"ca.crt", "tls.crt", "tls.key"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
