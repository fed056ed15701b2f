package ecommerceplatform_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestCacheMetrics: the cache exports its metrics while the EcommercePlatform is monitored, and
// admits the namespace that the settings name.
func TestCacheMetrics(t *testing.T) {
	const tiers = "frontend: {image: 'f:1'}, backend: {image: 'b:1'}"
	cases := map[string]struct {
		reason, spec    string
		serve           bool
		exports, scrape bool
	}{
		"Default": {reason: "A shop is monitored; without PodMonitors none is made.", spec: "{" + tiers + "}", exports: true},
		"Scraped": {reason: "Where the cluster has PodMonitors, there is one.", spec: "{" + tiers + "}", serve: true, exports: true, scrape: true},
		"Off":     {reason: "A shop that is not monitored exports nothing.", spec: "{" + tiers + ", monitoring: {enabled: false}}", serve: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.InstallSettings("{monitoring: {namespace: watchers}}")
			if tc.serve {
				c.Serve("podmonitor")
			}
			c.Settle()
			pod := functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"]).Spec.Template.Spec
			exporter := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "metrics" })
			if (exporter >= 0) != tc.exports {
				t.Fatalf("%s\nwant an exporter: %t, got containers %v", tc.reason, tc.exports, pod.Containers)
			}
			if socket := slices.Contains(pod.Containers[0].Args, "--unixsocket"); socket != tc.exports {
				t.Errorf("%s\nwant a socket: %t, got %t", tc.reason, tc.exports, socket)
			}
			ports := []int32{}
			for _, way := range functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["cache-networkpolicy"]).Spec.Ingress {
				for _, p := range way.Ports {
					ports = append(ports, p.Port.IntVal)
				}
			}
			if slices.Contains(ports, 9121) != tc.exports || !slices.Contains(ports, 6379) {
				t.Errorf("%s\nthe network admits to ports %v", tc.reason, ports)
			}
			if monitor := c.Observed["cache-podmonitor"]; (monitor != nil) != tc.scrape {
				t.Errorf("%s\nwant a PodMonitor: %t, got %t", tc.reason, tc.scrape, monitor != nil)
			} else if tc.scrape {
				pm := functionstest.As[monitoringv1.PodMonitor](t, monitor)
				if at := pm.Spec.PodMetricsEndpoints; len(at) != 1 || *at[0].Port != "metrics" {
					t.Errorf("%s\nPrometheus reads %v", tc.reason, at)
				}
			}
			if !tc.exports {
				return
			}
			for _, e := range pod.Containers[exporter].Env {
				if e.Name == "REDIS_PASSWORD" && (e.Value != "" || e.ValueFrom.SecretKeyRef.Key != "metrics-password") {
					t.Errorf("%s\nthe exporter has a password of its own, by its Secret: got %v", tc.reason, e)
				}
			}
			user, password := c.SecretValue("cache-secret", "metrics.conf"), c.SecretValue("cache-secret", "metrics-password")
			if password == c.SecretValue("cache-secret", "password") || !strings.Contains(user, ">"+password+" ") || strings.ContainsAny(user, "~") || strings.Contains(user, "+config") {
				t.Errorf("%s\nthe exporter's user reads no key and no setting", tc.reason)
			}
		})
	}
}

// TestCacheMetricsToggled: turning monitoring on restarts the cache once, and none of its clients.
func TestCacheMetricsToggled(t *testing.T) {
	c := simulate(t, "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, monitoring: {enabled: false}}")
	c.Settle()
	backend := functionstest.Get(c.Observed["backend"], "spec", "env").AsInterface()
	version := functionstest.Get(c.Observed["cache-server"], "spec", "template", "metadata", "annotations").AsInterface()
	c.Edit(true, "monitoring", "enabled")
	c.Settle()
	if diff := cmp.Diff(backend, functionstest.Get(c.Observed["backend"], "spec", "env").AsInterface()); diff != "" {
		t.Errorf("the backend's environment: -before, +after:\n%s", diff)
	}
	if diff := cmp.Diff(version, functionstest.Get(c.Observed["cache-server"], "spec", "template", "metadata", "annotations").AsInterface()); diff != "" {
		t.Errorf("the cache's versions: -before, +after:\n%s", diff)
	}
}
