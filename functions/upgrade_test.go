package functions_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/images"
)

// clock is a source with a time that the test sets.
type clock struct {
	compose.SystemSource

	now *time.Time
}

func (c clock) Now() time.Time { return *c.now }

// release returns the function of a release of Storeplane, with images of its own.
func release(version string, now *time.Time) *functions.Function {
	digests := images.Digests{}
	for _, name := range []string{"postgresql:14", "postgresql:15", "postgresql:16", "postgresql:17", "postgresql:18", "postgresql:17.2", "redis:8", "backup:postgresql", "redis-exporter:1", "postgresql-exporter:1"} {
		digests[name] = "sha256:" + version
	}
	return functions.New(functions.WithSource(clock{now: now}), functions.WithImages(images.Set{Registry: images.DefaultRegistry, Digests: digests, Version: version}))
}

// pods returns the pod templates of workloads and the specs of nested claims, by component.
func pods(c *functionstest.Crossplane) map[string]any {
	out := map[string]any{}
	for name, o := range c.Observed {
		switch functionstest.Get(o, "kind").GetStringValue() {
		case "Deployment", "StatefulSet":
			out[name] = functionstest.Get(o, "spec", "template").AsInterface()
		case "DatabaseCluster", "WebApp":
			out[name] = functionstest.Get(o, "spec").AsInterface()
		}
	}
	return out
}

// TestUpgrade: outside of the maintenance window another release changes no pods and condition
// Upgraded is False; in the window, or once the annotation requests the release, pods are replaced.
func TestUpgrade(t *testing.T) {
	window := map[string]any{"start": "02:00", "timeZone": "Europe/Paris"}
	cases := map[string]struct{ reason, claim string }{
		"DatabaseCluster":   {reason: "Servers run images of the release.", claim: functionstest.DatabaseCluster(functionstest.Production)},
		"EcommercePlatform": {reason: "So does the cache of a shop.", claim: functionstest.EcommercePlatform(functionstest.BigShop)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
			c := functionstest.New(t, tc.claim)
			c.Function = release("v0.1.0", &now)
			c.Serve("backup")
			functionstest.Set(c.Claim, window, "spec", "maintenance")
			c.Settle()
			before := pods(c)

			c.Function = release("v0.2.0", &now)
			c.Settle()
			if diff := cmp.Diff(before, pods(c)); diff != "" {
				t.Errorf("%s\npods changed out of the window: -before, +after:\n%s", tc.reason, diff)
			}
			if status, message := c.Condition(appsv1.TypeUpgraded); status != "False" {
				t.Errorf("%s\nwant it said that the release waits, got %s %q", tc.reason, status, message)
			}
			if c.Phase() != "Running" {
				t.Errorf("%s\nwant the claim Running while the release waits, got %s %q", tc.reason, c.Phase(), c.Message())
			}

			// Rolled back to the old release: no pods change, as none ran the new one.
			c.Function = release("v0.1.0", &now)
			c.Settle()
			if diff := cmp.Diff(before, pods(c)); diff != "" {
				t.Errorf("%s\npods changed by a rollback: -before, +after:\n%s", tc.reason, diff)
			}

			c.Function = release("v0.2.0", &now)
			now = time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC) // 03:00 in Paris
			c.Settle()
			if cmp.Equal(before, pods(c)) {
				t.Errorf("%s\nwant other pods in the window", tc.reason)
			}
			if status, message := c.Condition(appsv1.TypeUpgraded); status != "True" {
				t.Errorf("%s\nwant it said that the claim is upgraded, got %s %q", tc.reason, status, message)
			}

			now = now.Add(12 * time.Hour)
			upgraded := pods(c)
			c.Function = release("v0.3.0", &now)
			c.Settle()
			pending := functionstest.Get(c.Claim, "status", "pendingRelease").GetStringValue()
			if diff := cmp.Diff(upgraded, pods(c)); diff != "" || pending == "" {
				t.Fatalf("%s\npods changed after the window, or no release is pending (%q):\n%s", tc.reason, pending, diff)
			}
			functionstest.Set(c.Claim, pending, "metadata", "annotations", compose.UpgradeAnnotation)
			c.Settle()
			if cmp.Equal(upgraded, pods(c)) {
				t.Errorf("%s\nwant other pods once the release is asked for", tc.reason)
			}
		})
	}
}

// TestUpgradeOfShop: the claims that an EcommercePlatform composes have its maintenance window and
// its upgrade annotation.
func TestUpgradeOfShop(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	c := functionstest.New(t, functionstest.EcommercePlatform(functionstest.BigShop))
	c.Function = release("v0.1.0", &now)
	functionstest.Set(c.Claim, map[string]any{"start": "02:00"}, "spec", "maintenance")
	c.Settle()
	functionstest.Set(c.Claim, "v0.2.0-a1b2c3", "metadata", "annotations", compose.UpgradeAnnotation)
	c.Settle()
	for _, name := range []string{"database", "backend", "frontend"} {
		o := c.Observed[name]
		if got := functionstest.Get(o, "spec", "maintenance", "start").GetStringValue(); got != "02:00" {
			t.Errorf("%s: want the shop's window, got %q", name, got)
		}
		if got := functionstest.Get(o, "metadata", "annotations", compose.UpgradeAnnotation).GetStringValue(); got != "v0.2.0-a1b2c3" {
			t.Errorf("%s: want the release that the shop is to have, got %q", name, got)
		}
	}
}

// TestUpgradeInputs: neither a change that a release itself makes to a Secret that pods read nor
// the number of pods is an input of a user, for which a waiting release would be applied; a new
// password is.
func TestUpgradeInputs(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		change func(c *functionstest.Crossplane)
		waits  bool
	}{
		"Release":  {reason: "Another text of redis.conf is the release's.", waits: true, change: func(c *functionstest.Crossplane) { setSecret(c, "redis.conf", "maxmemory 1gb") }},
		"Password": {reason: "Another password is a user's.", change: func(c *functionstest.Crossplane) { setSecret(c, "password", "another-password") }},
		"Scale":    {reason: "An autoscaler's number of pods is not one.", waits: true, change: func(c *functionstest.Crossplane) { c.Edit(5, "replicas") }},
		"Edit":     {reason: "An edit is.", change: func(c *functionstest.Crossplane) { c.Edit("registry.example.com/web:v9", "frontend", "image") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, functionstest.EcommercePlatform(functionstest.BigShop))
			c.Function = release("v0.1.0", &now)
			functionstest.Set(c.Claim, map[string]any{"start": "02:00"}, "spec", "maintenance")
			c.Settle()
			c.Function = release("v0.2.0", &now)
			c.Settle()
			tc.change(c)
			c.Reconcile()
			c.Reconcile()
			if waits := functionstest.Get(c.Claim, "status", "pendingRelease").GetStringValue() != ""; waits != tc.waits {
				t.Errorf("%s\nthe release waits: %t, want %t", tc.reason, waits, tc.waits)
			}
		})
	}
}

// setSecret sets a key of the cache's Secret.
func setSecret(c *functionstest.Crossplane, key, value string) {
	functionstest.Fields(c.Observed["cache-secret"], "data")[key] = structpb.NewStringValue(compose.SecretData(value))
}

// TestUpgradeSettings: the installation has a maintenance window for each environment, invalid
// windows are refused, and an urgent release does not wait for a window.
func TestUpgradeSettings(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	waits := func(t *testing.T, settings string) bool {
		t.Helper()
		c := functionstest.New(t, functionstest.DatabaseCluster(functionstest.Production))
		c.Function = release("v0.1.0", &now)
		c.InstallSettings(settings)
		c.Settle()
		before := pods(c)
		c.Function = release("v0.2.0", &now)
		c.Settle()
		return cmp.Equal(before, pods(c))
	}
	for settings, want := range map[string]bool{
		`{}`: false,
		`{maintenance: {production: {days: [Saturday, Sunday], start: "02:00"}}}`:                                   true,
		`{maintenance: {production: {start: "11:00"}}}`:                                                             false,
		`{maintenance: {development: {start: "02:00"}}}`:                                                            false,
		`{maintenance: {production: {start: "02:00"}}, upgrades: {urgent: [v0.2.0]}}`:                               false,
		`{maintenance: {production: {start: "02:00"}}, upgrades: {urgent: [v0.2.1]}}`:                               true,
		`{maintenance: {production: {start: "02:00", hours: 1, timeZone: Asia/Tokyo}}, monitoring: {namespace: m}}`: true,
	} {
		if got := waits(t, settings); got != want {
			t.Errorf("%s: the release waits: %t, want %t", settings, got, want)
		}
	}
	for settings, want := range map[string]string{
		`{maintenance: {production: {start: "2"}}}`:                   `cannot use EnvironmentConfig storeplane: data.maintenance.production.start must be hours and minutes like 02:30, is "2"`,
		`{maintenance: {prod: {start: "02:00"}}}`:                     `cannot use EnvironmentConfig storeplane: data.maintenance must be of development, staging or production, is of "prod"`,
		`{maintenance: {staging: {start: "02:00", days: [Weekend]}}}`: `cannot use EnvironmentConfig storeplane: data.maintenance.staging.days must be names like Saturday, is "Weekend"`,
	} {
		c := functionstest.New(t, functionstest.DatabaseCluster(functionstest.Production))
		c.InstallSettings(settings)
		c.Reconcile()
		if got := c.Message(); got != want {
			t.Errorf("%s: want %q, got %q", settings, want, got)
		}
	}
}
