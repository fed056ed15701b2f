package functions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// tiers are the bundles that backend and frontend are told to run.
func tiers(t *testing.T, c *cluster) [2]string {
	t.Helper()
	var out [2]string
	for i, n := range []string{"backend", "frontend"} {
		if from := as[appsv1.WebApp](t, c.observed[n]).Spec.EnvFrom; len(from) > 0 && from[0].ConfigMapRef != nil {
			out[i] = from[0].ConfigMapRef.Name
		}
	}
	return out
}

const configuredShop = "{environment: production, frontend: {image: f:1, envFrom: [{secretRef: {name: s}}]}, backend: {image: b:1}, config: {A: '1'}}"

// TestEcommercePlatformConfig: one AppConfig for both tiers, whose own claims
// know nothing of it but a bundle.
func TestEcommercePlatformConfig(t *testing.T) {
	c := newCluster(t, ecommercePlatform(configuredShop))
	c.settle()
	want := configv1.AppConfigParameters{
		Application: "store", Environment: configv1.Prod, Config: map[string]string{"A": "1"}, Templating: configv1.TemplatingNone,
		Targets: []configv1.Target{{Kind: configv1.Deployment, Name: "store-backend-web"}, {Kind: configv1.Deployment, Name: "store-frontend-web"}},
		Rollout: &configv1.Rollout{By: configv1.ByOwner, Order: configv1.Sequential},
	}
	a := as[configv1.AppConfig](t, c.observed["appconfig"])
	if diff := cmp.Diff(want, a.Spec.ForProvider); diff != "" || a.Name != "store-config" {
		t.Errorf("AppConfig %s: -want, +got:\n%s", a.Name, diff)
	}
	b := c.lastGood()
	if got := tiers(t, c); got != [2]string{b, b} {
		t.Errorf("want %s in both tiers, got %v", b, got)
	}
	if from := as[appsv1.WebApp](t, c.observed["frontend"]).Spec.EnvFrom; len(from) != 2 || from[1].SecretRef.Name != "s" {
		t.Errorf("What a tier names itself comes after the config and wins: got %v", from)
	}
	for _, n := range []string{"backend", "frontend"} {
		if got := as[appsv1.WebApp](t, c.observed[n]).Annotations[configv1.AllowAnnotation]; got != "store-config" {
			t.Errorf("want the %s to allow the claim's own AppConfig, got %q", n, got)
		}
	}
	if diff := cmp.Diff(map[string]any{"bundle": b, "state": "Running"}, get(c.claim, "status", "config").GetStructValue().AsMap()); diff != "" {
		t.Errorf("status.config: -want, +got:\n%s", diff)
	}
	c.edit(nil, "config")
	c.settle()
	if got := tiers(t, c); got != [2]string{} || c.observed["appconfig"] != nil {
		t.Errorf("Without config there is nothing of it: got %v, %v", got, c.names())
	}
}

// TestEcommercePlatformConfigRollsOut: the backend first, and only if it is well
// the frontend. The way back waits for nobody.
func TestEcommercePlatformConfigRollsOut(t *testing.T) {
	c := newCluster(t, ecommercePlatform(configuredShop))
	c.settle()
	first := c.lastGood()
	is := func(when, backend, frontend string) {
		t.Helper()
		c.reconcile()
		if got := tiers(t, c); got != [2]string{backend, frontend} {
			t.Errorf("%s: want %s and %s, got %v", when, backend, frontend, got)
		}
	}
	c.edit("2", "config", "A")
	is("The config is applied", first, first)
	is("It has no bundle yet", first, first)
	second := c.takeUp()
	is("The backend goes first", second, first)
	is("It is on its way", second, first)
	c.heal("backend")
	is("It is well", second, second)
	if status, _ := c.condition("ConfigReady"); status != "False" {
		t.Errorf("ConfigReady: got %s before the frontend is well", status)
	}
	c.settle()
	is("All is well", second, second)

	c.edit("3", "config", "A")
	c.reconcile()
	third := c.takeUp()
	is("The backend goes first again", third, second)
	c.rollBack("it does not start")
	is("It never reached the frontend", second, second)
	if got := c.verdict("ConfigReady"); got != "False RolledBack it does not start" {
		t.Errorf("ConfigReady: got %s", got)
	}

	c.edit("4", "config", "A")
	c.reconcile()
	fourth := c.takeUp()
	c.reconcile()
	c.heal("backend")
	is("The next one is good for the backend", fourth, fourth)
	c.rollBack("the frontend does not start")
	is("And comes back from both at once", second, second)
}
