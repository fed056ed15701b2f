package functions_test

import (
	"testing"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestGuardrails: claims of every kind are checked before any object is created for them. The rules
// themselves are tested in internal/guardrails.
func TestGuardrails(t *testing.T) {
	cases := map[string]struct {
		reason string
		claim  string
		want   string
	}{
		"WebApp":           {reason: "The image of a WebApp is judged.", claim: functionstest.WebApp("{environment: production, image: registry.example.com/hello}"), want: "image is registry.example.com/hello, which means the latest: name a version or a digest in production"},
		"WebAppTwin":       {reason: "With a version it is well.", claim: functionstest.WebApp("{environment: production, image: registry.example.com/hello:v1}")},
		"Shop":             {reason: "All that a shop breaks is said at once.", claim: functionstest.EcommercePlatform("{environment: production, frontend: {image: 'f:1', resources: {limits: {cpu: 1}}}, backend: {image: 'b:latest'}}"), want: "backend.image is b:latest, which means the latest: name a version or a digest in production; frontend.resources has no limits.memory: set it in production, or leave out resources for the default"},
		"ShopTwin":         {reason: "And when it is mended it is well.", claim: functionstest.EcommercePlatform("{environment: production, frontend: {image: 'f:1', resources: {limits: {memory: 1Gi}}}, backend: {image: 'b:2'}}")},
		"DatabaseCluster":  {reason: "So are a database's limits.", claim: functionstest.DatabaseCluster("{environment: production, size: 3, version: '17', resources: {requests: {cpu: 1}}}"), want: "resources has no limits.memory: set it in production, or leave out resources for the default"},
		"DatabaseCluster3": {reason: "With defaults it is well.", claim: functionstest.DatabaseCluster("{environment: production, size: 3, version: '17'}")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, tc.claim); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestGuardrailsTightened: a rule that is added later does not change what already runs.
func TestGuardrailsTightened(t *testing.T) {
	const want = "image is registry.example.com/hello:1, which is from no approved registry: use an image from registry.company.com"
	c := functionstest.New(t, functionstest.BigApp)
	got := functionstest.RefusedWhileRunning(t, c, func() { c.InstallSettings("{policy: {approvedRegistries: [registry.company.com]}}") })
	if got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	c.InstallSettings("{policy: {approvedRegistries: [registry.company.com, registry.example.com]}}")
	c.Settle()
	if status, message := c.Condition("Accepted"); status != "True" {
		t.Errorf("once its registry is approved the claim goes on, got %s %q", status, message)
	}
}

// TestGuardrailsNested: the claims that a production EcommercePlatform composes pass the rules that
// the EcommercePlatform itself passed.
func TestGuardrailsNested(t *testing.T) {
	shop := functionstest.New(t, functionstest.EcommercePlatform("{environment: production, frontend: {image: 'f:1'}, backend: {image: 'b:1'}}"))
	shop.InstallSettings("{policy: {approvedRegistries: [docker.io]}}")
	shop.Settle()
	for _, component := range []string{"database", "backend", "frontend"} {
		if rsp := shop.Nested(component).Run(); len(rsp.GetResults()) > 0 {
			t.Errorf("want %s accepted, got %v", component, rsp.GetResults())
		}
	}
}
