package databasecluster_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// crossplane simulates Crossplane for a claim.
type crossplane = functionstest.Crossplane

// simulate simulates Crossplane for a DatabaseCluster with this spec.
func simulate(t testing.TB, spec string, opts ...functions.Option) *crossplane {
	t.Helper()
	return functionstest.New(t, functionstest.DatabaseCluster(spec), opts...)
}

// servers returns the observed StatefulSet of the servers.
func servers(t testing.TB, c *crossplane) *k8sappsv1.StatefulSet {
	t.Helper()
	return functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["postgresql"])
}

// desiredOf returns the desired state that the instance managers read.
func desiredOf(t testing.TB, c *crossplane) instance.Desired {
	t.Helper()
	var out instance.Desired
	if err := json.Unmarshal([]byte(functionstest.As[corev1.ConfigMap](t, c.Observed["config"]).Data[instance.DesiredKey]), &out); err != nil {
		t.Fatalf("the instance managers cannot read their desired state: %v", err)
	}
	return out
}

// patroni returns the servers' configuration, and fails if its YAML has duplicate keys.
func patroni(t testing.TB, c *crossplane) map[string]any {
	t.Helper()
	text := functionstest.As[corev1.ConfigMap](t, c.Observed["config"]).Data["patroni.yaml"]
	out := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatalf("patroni.yaml is no YAML: %v\n%s", err, text)
	}
	return out
}

// dynamic returns the configuration that all servers share, as Patroni reads it.
func dynamic(t testing.TB, c *crossplane) map[string]any {
	t.Helper()
	text := functionstest.Get(c.Observed["patroni-config"], "metadata", "annotations", "config").GetStringValue()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("Patroni's dynamic configuration is no JSON: %v\n%s", err, text)
	}
	return out
}

func TestComponents(t *testing.T) {
	one := []string{
		"account", "ca", "config", "connection", "control-tls", "credentials", "headless", "instances", "networkpolicy", "patroni-config", "patroni-failover", "patroni-sync",
		"postgresql", "primary", "role", "rolebinding", "tls",
	}
	with := func(more ...string) []string { return slices.Sorted(slices.Values(append(slices.Clone(one), more...))) }
	// Without a destination, backups are stored on a volume, which has a server of its own.
	backed := func(more ...string) []string {
		return append(more, "backup-account", "backup-first-"+build.Digest("volume", "data-orders-repository-0", "", "")[:8], "backup-full", "backup-networkpolicy", "backup-tls", "repository", "repository-networkpolicy", "repository-service")
	}
	cases := map[string]struct {
		reason  string
		spec    string
		prepare func(*crossplane)
		want    []string
	}{
		"One":        {reason: "One server has no replica to read from, and no budget to keep.", spec: functionstest.OneServer, want: one},
		"Two":        {reason: "Two have one.", spec: "{size: 2, version: '17'}", want: with("replica")},
		"Staging":    {reason: "Staging has a budget also with one.", spec: "{size: 1, version: '17', environment: staging}", want: with(backed("disruptionbudget")...)},
		"Production": {reason: "Production is protected too.", spec: functionstest.Production, want: with(backed("disruptionbudget", "protection", "replica")...)},
		"Hibernated": {reason: "What sleeps is all there but its pods.", spec: "{size: 1, version: '17', hibernated: true}", want: one},
		"Users":      {reason: "Each user has a Secret to connect with.", spec: "{size: 1, version: '17', users: [{name: reader}, {name: order_writer}]}", want: with("user-order-writer", "user-reader")},
		"PodMonitor": {reason: "Where there are PodMonitors there is one.", spec: functionstest.OneServer, prepare: func(c *crossplane) { c.Serve("podmonitor") }, want: with("podmonitor")},
		"Unmonitored": {
			reason: "Unless monitoring is turned off.", spec: "{size: 1, version: '17', monitoring: {enabled: false}}", prepare: func(c *crossplane) { c.Serve("podmonitor") }, want: one,
		},
		"BroughtTLS": {
			reason: "A claim with certificates of its own needs no authority.", spec: "{size: 1, version: '17', tls: {secretName: certs}}",
			prepare: func(c *crossplane) {
				c.Others = append(c.Others, functionstest.CertificateSecret(t, nil))
			},
			want: slices.DeleteFunc(with(), func(n string) bool { return n == "ca" || n == "tls" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			if tc.prepare != nil {
				tc.prepare(c)
			}
			c.Settle()
			if diff := cmp.Diff(tc.want, c.ComponentNames()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAtOnce: no object of a database waits for another one, so that one pass applies them all, and the
// claim has one generation.
func TestAtOnce(t *testing.T) {
	c := simulate(t, functionstest.BigCluster)
	c.Serve("podmonitor")
	if got := c.Settle(); len(got) != 1 || !slices.Contains(got[0], "rolebinding") {
		t.Errorf("want all in one pass, got %v", got)
	}
}

// TestSettings: the settings of the installation apply to fields that the claim does not set.
func TestSettings(t *testing.T) {
	type want struct{ images, class string }
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Silent": {reason: "All containers come from the installation's registry.", spec: functionstest.OneServer, want: want{"registry.local:5000/mine/postgresql:17", "fast"}},
		"Minor":  {reason: "A minor is the image's tag.", spec: "{size: 1, version: '17.2'}", want: want{"registry.local:5000/mine/postgresql:17.2", "fast"}},
		"Patch":  {reason: "A third number means nothing.", spec: "{size: 1, version: '17.2.0'}", want: want{"registry.local:5000/mine/postgresql:17.2", "fast"}},
		"Own":    {reason: "The claim's own class wins.", spec: "{size: 1, version: '18', storageClassName: slow}", want: want{"registry.local:5000/mine/postgresql:18", "slow"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.InstallSettings("{imageRegistry: 'registry.local:5000/mine', storageClassName: fast}")
			c.Settle()
			set := servers(t, c)
			for _, container := range slices.Concat(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers) {
				if container.Image != tc.want.images {
					t.Errorf("%s\ncontainer %s: want image %s, got %s", tc.reason, container.Name, tc.want.images, container.Image)
				}
			}
			if got := set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName; got == nil || *got != tc.want.class {
				t.Errorf("%s\nwant storage class %s, got %v", tc.reason, tc.want.class, got)
			}
		})
	}
}
