package ecommerceplatform_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
)

// tiers returns the bundles to which the specs of the backend and the frontend refer.
func tiers(t *testing.T, c *functionstest.Crossplane) [2]string {
	t.Helper()
	var out [2]string
	for i, n := range []string{"backend", "frontend"} {
		if from := functionstest.As[appsv1.WebApp](t, c.Observed[n]).Spec.EnvFrom; len(from) > 0 && from[0].ConfigMapRef != nil {
			out[i] = from[0].ConfigMapRef.Name
		}
	}
	return out
}

const configuredShop = "{environment: production, frontend: {image: f:1, envFrom: [{secretRef: {name: s}}]}, backend: {image: b:1}, config: {A: '1'}}"

// TestConfig: both tiers share one AppConfig, and their own claims only refer to its bundle.
func TestConfig(t *testing.T) {
	c := simulate(t, configuredShop)
	c.Settle()
	want := configv1.AppConfigParameters{
		Application: "store", Environment: configv1.Prod, Config: map[string]string{"A": "1"}, Templating: configv1.TemplatingNone,
		Targets: []configv1.Target{{Kind: configv1.Deployment, Name: "store-backend-web"}, {Kind: configv1.Deployment, Name: "store-frontend-web"}},
		Rollout: &configv1.Rollout{By: configv1.ByOwner, Order: configv1.Sequential},
	}
	a := functionstest.As[configv1.AppConfig](t, c.Observed["appconfig"])
	if diff := cmp.Diff(want, a.Spec.ForProvider); diff != "" || a.Name != "store-config" {
		t.Errorf("AppConfig %s: -want, +got:\n%s", a.Name, diff)
	}
	b := c.LastGoodBundle()
	if got := tiers(t, c); got != [2]string{b, b} {
		t.Errorf("want %s in both tiers, got %v", b, got)
	}
	if from := functionstest.As[appsv1.WebApp](t, c.Observed["frontend"]).Spec.EnvFrom; len(from) != 2 || from[1].SecretRef.Name != "s" {
		t.Errorf("What a tier names itself comes after the config and wins: got %v", from)
	}
	for _, n := range []string{"backend", "frontend"} {
		if got := functionstest.As[appsv1.WebApp](t, c.Observed[n]).Annotations[configv1.AllowAnnotation]; got != "store-config" {
			t.Errorf("want the %s to allow the claim's own AppConfig, got %q", n, got)
		}
	}
	if diff := cmp.Diff(map[string]any{"bundle": b, "state": "Running"}, functionstest.Get(c.Claim, "status", "config").GetStructValue().AsMap()); diff != "" {
		t.Errorf("status.config: -want, +got:\n%s", diff)
	}
	c.Edit(nil, "config")
	c.Settle()
	if got := tiers(t, c); got != [2]string{} || c.Observed["appconfig"] != nil {
		t.Errorf("Without config there is nothing of it: got %v, %v", got, c.ComponentNames())
	}
}

// TestConfigRollsOut: the backend gets a new bundle first, and the frontend gets it once the
// backend is healthy. An automatic rollback changes both at once.
func TestConfigRollsOut(t *testing.T) {
	c := simulate(t, configuredShop)
	c.Settle()
	first := c.LastGoodBundle()
	is := func(when, backend, frontend string) {
		t.Helper()
		c.Reconcile()
		if got := tiers(t, c); got != [2]string{backend, frontend} {
			t.Errorf("%s: want %s and %s, got %v", when, backend, frontend, got)
		}
	}
	c.Edit("2", "config", "A")
	is("The config is applied", first, first)
	is("It has no bundle yet", first, first)
	second := c.TakeUpConfig()
	is("The backend goes first", second, first)
	is("It is on its way", second, first)
	c.Heal("backend")
	is("It is well", second, second)
	if status, _ := c.Condition("ConfigReady"); status != "False" {
		t.Errorf("ConfigReady: got %s before the frontend is well", status)
	}
	c.Settle()
	is("All is well", second, second)

	c.Edit("3", "config", "A")
	c.Reconcile()
	third := c.TakeUpConfig()
	is("The backend goes first again", third, second)
	c.RollBackConfig("it does not start")
	is("It never reached the frontend", second, second)
	if got := c.ConditionLine("ConfigReady"); got != "False RolledBack it does not start" {
		t.Errorf("ConfigReady: got %s", got)
	}

	c.Edit("4", "config", "A")
	c.Reconcile()
	fourth := c.TakeUpConfig()
	c.Reconcile()
	c.Heal("backend")
	is("The next one is good for the backend", fourth, fourth)
	c.RollBackConfig("the frontend does not start")
	is("And comes back from both at once", second, second)
}
