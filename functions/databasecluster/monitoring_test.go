package databasecluster_test

import (
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestMonitoring: metrics are exported if the claim is monitored, and scraped by a PodMonitor if
// the cluster also has the kind.
func TestMonitoring(t *testing.T) {
	noSchema := func(c *crossplane) { c.Schemas = map[string]*fnv1.Schema{"podmonitor": {}} }
	otherSchema := func(c *crossplane) { c.Serve("servicemonitor") }
	podMonitors := func(c *crossplane) { c.Serve("podmonitor") }
	type want struct {
		Containers []string
		Scraped    []string // ports
		Admitted   string   // namespace, empty if no client is admitted
	}
	containers := []string{"instance", "postgresql", "metrics"}
	ports := []string{"metrics", "patroni", "instance"}
	cases := map[string]struct {
		reason   string
		spec     string
		settings string
		cluster  func(*crossplane)
		want     want
	}{
		"Default":      {reason: "Metrics are exported, and no client is let in that was not named.", spec: functionstest.OneServer, want: want{containers, nil, ""}},
		"HasKind":      {reason: "Prometheus is told where the cluster has its operator.", spec: functionstest.OneServer, cluster: podMonitors, want: want{containers, ports, ""}},
		"HasNot":       {reason: "Crossplane found no such kind.", spec: functionstest.OneServer, cluster: noSchema, want: want{containers, nil, ""}},
		"OtherKind":    {reason: "Another kind is another.", spec: functionstest.OneServer, cluster: otherSchema, want: want{containers, nil, ""}},
		"Said":         {reason: "To want what is the default is no change.", spec: "{size: 1, version: '17', monitoring: {enabled: true}}", cluster: podMonitors, want: want{containers, ports, ""}},
		"SaidNothing":  {reason: "An empty field says nothing.", spec: "{size: 1, version: '17', monitoring: {}}", cluster: podMonitors, want: want{containers, ports, ""}},
		"Off":          {reason: "Without there is no exporter and no way in.", spec: "{size: 1, version: '17', monitoring: {enabled: false}}", cluster: podMonitors, want: want{containers[:2], nil, ""}},
		"Namespace":    {reason: "An installation may say where Prometheus is.", spec: functionstest.OneServer, settings: "{monitoring: {namespace: observability}}", want: want{containers, nil, "observability"}},
		"NamespaceOff": {reason: "Which matters only where it comes.", spec: "{size: 1, version: '17', monitoring: {enabled: false}}", settings: "{monitoring: {namespace: observability}}", want: want{containers[:2], nil, ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			if tc.settings != "" {
				c.InstallSettings(tc.settings)
			}
			if tc.cluster != nil {
				tc.cluster(c)
			}
			c.Settle()
			pod := servers(t, c).Spec.Template.Spec
			got := want{}
			declared := map[string]int32{}
			for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
				got.Containers = append(got.Containers, container.Name)
				for _, p := range container.Ports {
					declared[p.Name] = p.ContainerPort
				}
			}
			if pm := c.Observed["podmonitor"]; pm != nil {
				spec := functionstest.As[monitoringv1.PodMonitor](t, pm).Spec
				if diff := cmp.Diff(servers(t, c).Spec.Selector.MatchLabels, spec.Selector.MatchLabels); diff != "" {
					t.Errorf("%s\nit reads the servers: -want, +got:\n%s", tc.reason, diff)
				}
				for _, e := range spec.PodMetricsEndpoints {
					got.Scraped = append(got.Scraped, *e.Port)
					if secret := *e.Port != "metrics"; secret != (e.Scheme == "https") || secret && (*e.TLSConfig.ServerName != "orders-postgresql.team.svc" || e.TLSConfig.CA.Secret != nil || e.TLSConfig.CA.ConfigMap.Name != "orders-postgresql" || e.TLSConfig.CA.ConfigMap.Key != "control.crt" || e.TLSConfig.InsecureSkipVerify != nil) {
						t.Errorf("%s\nport %s is read by %q, %+v", tc.reason, *e.Port, e.Scheme, e.TLSConfig)
					}
					if declared[*e.Port] == 0 {
						t.Errorf("%s\nno container has port %s", tc.reason, *e.Port)
					}
				}
			}
			for _, rule := range functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["networkpolicy"]).Spec.Ingress {
				if rule.From[0].NamespaceSelector == nil {
					continue
				}
				got.Admitted = rule.From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
				if got.Admitted == "" {
					got.Admitted = "all"
				}
				var admitted []int32
				for _, p := range rule.Ports {
					admitted = append(admitted, p.Port.IntVal)
				}
				if diff := cmp.Diff([]int32{9187, 8008, 8009}, admitted); diff != "" {
					t.Errorf("%s\nwho scrapes does not reach PostgreSQL: -want, +got:\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSidecar: the instance manager starts before PostgreSQL and stops after it.
func TestSidecar(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	pod := servers(t, c).Spec.Template.Spec
	var names []string
	for _, s := range pod.InitContainers {
		names = append(names, s.Name)
		if s.RestartPolicy == nil || *s.RestartPolicy != corev1.ContainerRestartPolicyAlways {
			t.Errorf("%s starts first, and is to go on", s.Name)
		}
	}
	if diff := cmp.Diff([]string{"instance", "backup"}, names); diff != "" {
		t.Errorf("containers that start first: -want, +got:\n%s", diff)
	}
	if p := pod.InitContainers[0].StartupProbe; p == nil || p.HTTPGet.Path != "/started" {
		t.Errorf("PostgreSQL starts once its volume has its size, got probe %v", p)
	}
	if stop := pod.Containers[0].Lifecycle.PreStop.Exec.Command; !slices.Equal(stop, []string{"/usr/local/bin/instance", "stop"}) {
		t.Errorf("a primary hands over before it stops, got %v", stop)
	}
}
