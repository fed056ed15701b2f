package webapp_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	k8sappsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/compose"
)

func TestGateway(t *testing.T) {
	const spec = "{image: x, port: 9000, ingress: {host: hello.example.com, annotations: {a: b}, gateway: {name: public, namespace: infra, sectionName: https}}}"
	c := simulate(t, spec)
	c.Serve("httproute")
	for range 3 {
		c.Reconcile()
		c.Heal()
	}
	if c.Observed["ingress"] != nil {
		t.Errorf("A Gateway takes the place of an Ingress")
	}
	route := functionstest.As[gatewayv1.HTTPRoute](t, c.Observed["httproute"])
	want := gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "public", Namespace: new(gatewayv1.Namespace("infra")), SectionName: new(gatewayv1.SectionName("https"))}}},
		Hostnames:       []gatewayv1.Hostname{"hello.example.com"},
		Rules: []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
			Name: "hello-web", Port: new(gatewayv1.PortNumber(9000)),
		}}}}}},
	}
	if diff := cmp.Diff(want, route.Spec); diff != "" || route.Name != "hello-web" || route.Annotations["a"] != "b" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := functionstest.Get(c.Claim, "status", "url").GetStringValue(); got != "https://hello.example.com" {
		t.Errorf("got url %s", got)
	}

	says := func(what, want string) {
		t.Helper()
		c.Reconcile()
		if got := c.ComponentStatus("ingress"); got != want {
			t.Errorf("%s: want %q, got %q", what, want, got)
		}
	}
	condition := func(typ, status, reason string) string {
		return "{type: " + typ + ", status: '" + status + "', reason: " + reason + ", observedGeneration: 1}"
	}
	c.SetStatus("httproute", "{}")
	says("No controller has observed it", "The Gateway has not taken the route yet")
	const parent = "{parentRef: {name: public, namespace: infra, sectionName: https}, conditions: ["
	c.SetStatus("httproute", "{parents: ["+parent+condition("Accepted", "False", "NotAllowedByListeners")+"]}]}")
	says("It is refused", "The Gateway does not take the route (NotAllowedByListeners): see its HTTPRoute")
	c.SetStatus("httproute", "{parents: ["+parent+condition("Accepted", "True", "Accepted")+", "+condition("ResolvedRefs", "False", "BackendNotFound")+"]}]}")
	says("It leads nowhere", "The Gateway finds no Service behind the route (BackendNotFound): see its HTTPRoute")
	c.SetStatus("httproute", "{parents: ["+parent+condition("Accepted", "True", "Accepted")+", "+condition("ResolvedRefs", "True", "ResolvedRefs")+"]}]}")
	says("It is taken", "ready")
	if c.Phase() != "Running" {
		t.Errorf("got %s: %s", c.Phase(), c.Message())
	}
	taken := parent + condition("Accepted", "True", "Accepted") + "]}"
	c.SetStatus("httproute", "{parents: [{parentRef: {name: old}, conditions: []}, "+taken+"]}")
	says("The Gateway before has left its entry", "ready")
	c.SetStatus("httproute", "{parents: ["+parent+condition("Accepted", "False", "NoMatchingParent")+"]}, "+taken+"]}")
	says("Another controller has nothing to do with it", "ready")
	c.SetStatus("httproute", "{parents: [{parentRef: {name: public}, conditions: ["+condition("Accepted", "True", "Accepted")+"]}]}")
	says("A Gateway of the same name is another one", "The Gateway has not taken the route yet")
	c.SetStatus("httproute", "{parents: ["+taken+"]}")
	c.Edit("other.example.com", "ingress", "host")
	c.Reconcile()
	says("What was said is about an older one", "The Gateway has not taken the route yet")

	// Without a gateway the Ingress is created again.
	c.Edit(nil, "ingress", "gateway")
	c.Settle()
	if c.Observed["httproute"] != nil || c.Observed["ingress"] == nil || functionstest.Get(c.Claim, "status", "url").GetStringValue() != "http://other.example.com" {
		t.Errorf("An Ingress takes its place again: got %v", c.ComponentNames())
	}
}

func TestIngressRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"NoGatewayAPI": {reason: "The cluster knows no routes.", spec: "{image: x, ingress: {host: a.b, gateway: {name: g}}}", want: "ingress.gateway: this cluster has no HTTPRoute of gateway.networking.k8s.io/v1: install the Gateway API, or leave gateway out to get an Ingress"},
		"Crossplane":   {reason: "Crossplane's annotations tell it what is whose.", spec: "{image: x, ingress: {host: a.b, annotations: {crossplane.io/paused: 'true'}}}", want: "ingress.annotations: crossplane.io/paused is not the claim's to set"},
		"Ours":         {reason: "Ours tell the kernel.", spec: "{image: x, ingress: {host: a.b, annotations: {storeplane.example.com/holds-data: 'true'}}}", want: "ingress.annotations: storeplane.example.com/holds-data is not the claim's to set"},
		"NoName":       {reason: "No object has such an annotation.", spec: "{image: x, ingress: {host: a.b, annotations: {'a b': c}}}", want: `ingress.annotations: "a b" is no name of an annotation`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, functionstest.WebApp(tc.spec)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestIngressAnnotations(t *testing.T) {
	c := simulate(t, "{image: x, ingress: {host: a.b, annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 8m, cert-manager.io/cluster-issuer: other}, tls: {issuer: letsencrypt}}}")
	c.Settle()
	want := map[string]string{"nginx.ingress.kubernetes.io/proxy-body-size": "8m", "cert-manager.io/cluster-issuer": "letsencrypt"}
	got := functionstest.As[networkingv1.Ingress](t, c.Observed["ingress"]).Annotations
	delete(got, compose.AppliedAnnotation)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("The claim's own, and the issuer where it is named: -want, +got:\n%s", diff)
	}
}

// TestMetrics: the PodMonitor scrapes this port, and the network policy admits this namespace to
// it.
func TestMetrics(t *testing.T) {
	podMonitors := func(c *crossplane) { c.Serve("podmonitor") }
	type want struct {
		Ports   []string // of the application's container
		Scraped string   // port and path
		Ways    []string // port and the clients that are admitted to it
	}
	cases := map[string]struct {
		reason  string
		spec    string
		cluster func(*crossplane)
		want    want
	}{
		"None":     {reason: "What has no metrics is not scraped.", spec: "{image: x}", cluster: podMonitors, want: want{Ports: []string{"http 8080"}, Ways: []string{"8080 pods"}}},
		"OwnPort":  {reason: "Metrics may have a port of their own, which only Prometheus reaches.", spec: "{image: x, metrics: {port: 9090}}", cluster: podMonitors, want: want{Ports: []string{"http 8080", "metrics 9090"}, Scraped: "metrics /metrics", Ways: []string{"8080 pods", "9090 observability"}}},
		"SamePort": {reason: "Or the application's.", spec: "{image: x, metrics: {path: /stats}}", cluster: podMonitors, want: want{Ports: []string{"http 8080"}, Scraped: "http /stats", Ways: []string{"8080 pods", "8080 observability"}}},
		"Sidecar":  {reason: "Or a sidecar's.", spec: "{image: x, sidecars: [{name: exporter, image: e, port: 9100}], metrics: {port: 9100}}", cluster: podMonitors, want: want{Ports: []string{"http 8080"}, Scraped: "exporter /metrics", Ways: []string{"8080 pods", "9100 observability"}}},
		"NoKind":   {reason: "Where no Prometheus reads PodMonitors there is none, and the way in is there for others.", spec: "{image: x, metrics: {}}", want: want{Ports: []string{"http 8080"}, Ways: []string{"8080 pods", "8080 observability"}}},
		"Ingress":  {reason: "The ingress controller does not reach the metrics' port.", spec: "{image: x, metrics: {port: 9090}, ingress: {host: a.b}}", want: want{Ports: []string{"http 8080", "metrics 9090"}, Ways: []string{"8080 pods", "8080 ingress-nginx", "9090 observability"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.InstallSettings("{monitoring: {namespace: observability}, ingress: {namespace: ingress-nginx}}")
			if tc.cluster != nil {
				tc.cluster(c)
			}
			c.Settle()
			got := want{}
			d := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"])
			for _, p := range d.Spec.Template.Spec.Containers[0].Ports {
				got.Ports = append(got.Ports, p.Name+" "+strconv.Itoa(int(p.ContainerPort)))
			}
			if pm := c.Observed["podmonitor"]; pm != nil {
				spec := functionstest.As[monitoringv1.PodMonitor](t, pm).Spec
				got.Scraped = *spec.PodMetricsEndpoints[0].Port + " " + spec.PodMetricsEndpoints[0].Path
				if diff := cmp.Diff(d.Spec.Selector.MatchLabels, spec.Selector.MatchLabels); diff != "" {
					t.Errorf("%s\nit reads the pods that take requests: -want, +got:\n%s", tc.reason, diff)
				}
			}
			for _, rule := range functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["networkpolicy"]).Spec.Ingress {
				for _, from := range rule.From {
					who := "pods"
					if from.NamespaceSelector != nil {
						who = from.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]
					}
					got.Ways = append(got.Ways, strconv.Itoa(rule.Ports[0].Port.IntValue())+" "+who)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestJobsPolicy: no client can connect to the pods of Jobs, in which sidecars listen.
func TestJobsPolicy(t *testing.T) {
	const sidecars = ", sidecars: [{name: proxy, image: p, port: 9100}]}"
	cases := map[string]struct {
		reason, spec string
		want         bool
	}{
		"Neither":   {reason: "There are no Jobs to close.", spec: "{image: x" + sidecars},
		"CronJob":   {reason: "A sidecar runs in its pods, too.", spec: "{image: x, cronJobs: [{name: clean, schedule: '@daily', args: [clean]}]" + sidecars, want: true},
		"Migration": {reason: "And in those of a migration.", spec: "{image: x, migration: {args: [migrate]}" + sidecars, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			o := c.Observed["networkpolicy-jobs"]
			if (o != nil) != tc.want {
				t.Fatalf("%s\nwant a policy: %t, got %v", tc.reason, tc.want, c.ComponentNames())
			}
			if !tc.want {
				return
			}
			want := networkingv1.NetworkPolicySpec{
				PodSelector: metav1.LabelSelector{
					MatchLabels:      map[string]string{"app.kubernetes.io/name": "webapp", "app.kubernetes.io/instance": "hello"},
					MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "batch.kubernetes.io/job-name", Operator: metav1.LabelSelectorOpExists}},
				},
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			}
			got := functionstest.As[networkingv1.NetworkPolicy](t, o)
			if diff := cmp.Diff(want, got.Spec); diff != "" || got.Name != "hello-jobs" {
				t.Errorf("%s\n%s: -want, +got:\n%s", tc.reason, got.Name, diff)
			}
			for _, p := range functionstest.Pods(t, c.Observed) {
				for k, v := range want.PodSelector.MatchLabels {
					if p.Labels[k] != v {
						t.Errorf("%s\npods of %s have label %s=%s, not %s", tc.reason, p.Component, k, p.Labels[k], v)
					}
				}
			}
		})
	}
}
