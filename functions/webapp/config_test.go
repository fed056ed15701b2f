package webapp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
)

// runs returns the version of the image and the first ConfigMap of the environment of the observed
// Deployment.
func runs(t *testing.T, c *crossplane) (image, bundle string) {
	t.Helper()
	return runsOf(functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Spec.Template.Spec)
}

func runsOf(pod corev1.PodSpec) (image, bundle string) {
	app := pod.Containers[0]
	if len(app.EnvFrom) > 0 && app.EnvFrom[0].ConfigMapRef != nil {
		bundle = app.EnvFrom[0].ConfigMapRef.Name
	}
	_, image, _ = strings.Cut(app.Image, "hello:")
	return image, bundle
}

const configuredApp = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: hello, namespace: team}
spec:
  image: registry.example.com/hello:1
  environment: staging
  config: {A: "1"}
  cronJobs: [{name: clean, schedule: "@daily"}]
`

// configured returns a claim whose first config has been rolled out.
func configured(t *testing.T) *crossplane {
	t.Helper()
	c := functionstest.New(t, configuredApp)
	c.Settle()
	return c
}

// TestConfig: the config of a claim becomes an AppConfig, and the pods read its bundle.
func TestConfig(t *testing.T) {
	c := functionstest.New(t, configuredApp)
	c.Reconcile()
	c.Reconcile() // The ServiceAccount is created first.
	want := configv1.AppConfigParameters{
		Application: "hello", Environment: configv1.Staging, Config: map[string]string{"A": "1"}, Templating: configv1.TemplatingNone,
		Targets: []configv1.Target{{Kind: configv1.Deployment, Name: "hello-web"}},
		Rollout: &configv1.Rollout{By: configv1.ByOwner},
	}
	a := functionstest.As[configv1.AppConfig](t, c.Observed["appconfig"])
	if diff := cmp.Diff(want, a.Spec.ForProvider); diff != "" || a.Name != "hello-config" {
		t.Errorf("AppConfig %s: -want, +got:\n%s", a.Name, diff)
	}
	// The pods refer to the bundle before it exists: the kubelet waits for it.
	first := functionstest.BundleName("hello", map[string]any{"A": "1"})
	if _, got := runs(t, c); got != first {
		t.Errorf("want the pods to take %s at once, got %s", first, got)
	}
	c.Reconcile()
	if got := functionstest.Get(c.Claim, "status", "config").GetStructValue().AsMap(); got["state"] != "Pending" || got["bundle"] != nil {
		t.Errorf("Nothing has been made of it yet: got %v", got)
	}

	c.Settle()
	if diff := cmp.Diff(map[string]any{"bundle": first, "state": "Running"}, functionstest.Get(c.Claim, "status", "config").GetStructValue().AsMap()); diff != "" {
		t.Errorf("status.config: -want, +got:\n%s", diff)
	}
	if got := c.ConditionLine("ConfigReady"); got != "True Healthy" {
		t.Errorf("ConfigReady: got %s", got)
	}
	if _, got := runsOf(functionstest.As[batchv1.CronJob](t, c.Observed["cron-clean"]).Spec.JobTemplate.Spec.Template.Spec); got != first {
		t.Errorf("CronJobs have the same config: want %s, got %s", first, got)
	}

	c.Edit(nil, "config")
	c.Settle()
	if _, got := runs(t, c); got != "" || slices.Contains(c.ComponentNames(), "appconfig") || functionstest.Get(c.Claim, "status", "config") != nil {
		t.Errorf("Without config there is nothing of it: got %q, %v", got, c.ComponentNames())
	}
	if got := c.ConditionLine("ConfigReady"); got != "True Disabled Not part of this claim" {
		t.Errorf("ConfigReady: got %s", got)
	}
}

// TestConfigRollsOut: edits of the config and of the image change the pods once, when the provider
// has created the bundle.
func TestConfigRollsOut(t *testing.T) {
	c := configured(t)
	before := proto.CloneOf(c.Observed["web"])
	first := c.LastGoodBundle()

	c.Edit("2", "config", "A")
	c.Edit("registry.example.com/hello:2", "image")
	for _, when := range []string{"The config is being applied", "The provider has not seen it", "However often it is asked"} {
		rsp := c.Reconcile()
		if diff := cmp.Diff(applicable(before), rsp.GetDesired().GetResources()["web"].GetResource(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: the pods stay as they are: -want, +got:\n%s", when, diff)
		}
		if status, _ := c.Condition("ConfigReady"); status != "False" || c.Phase() != "Deploying" {
			t.Errorf("%s: got ConfigReady %s, phase %s", when, status, c.Phase())
		}
	}
	if _, got := runsOf(functionstest.As[batchv1.CronJob](t, c.Observed["cron-clean"]).Spec.JobTemplate.Spec.Template.Spec); got != first {
		t.Errorf("CronJobs keep a bundle that there is: want %s, got %s", first, got)
	}

	second := c.TakeUpConfig()
	c.Reconcile()
	if image, got := runs(t, c); got != second || image != "2" {
		t.Errorf("Both are one change: want image 2 and %s, got %s and %s", second, image, got)
	}
	c.Heal("web")
	c.Reconcile()
	if got := c.ConditionLine("ConfigReady"); got != "False Waiting" || c.Phase() != "Deploying" {
		t.Errorf("It is good when the provider says so: got %s, phase %s", got, c.Phase())
	}
	if diff := cmp.Diff(map[string]any{"bundle": second, "state": "RollingOut"}, functionstest.Get(c.Claim, "status", "config").GetStructValue().AsMap()); diff != "" {
		t.Errorf("status.config: -want, +got:\n%s", diff)
	}
	c.Settle()
	if got := functionstest.Get(c.Claim, "status", "config", "state").GetStringValue(); got != "Running" || c.Message() != "" {
		t.Errorf("got %s, %q", got, c.Message())
	}
}

// TestConfigRollsBack: the pods run the bundle to which the provider rolls back, and the claim
// reports what failed until its config changes.
func TestConfigRollsBack(t *testing.T) {
	const wrong = "Deployment hello-web: pod hello-web-1: container app keeps failing"
	c := configured(t)
	first := c.LastGoodBundle()
	c.Edit("2", "config", "A")
	c.Reconcile()
	second := c.TakeUpConfig()
	c.Reconcile()
	c.RollBackConfig(wrong)
	c.Reconcile()
	if _, got := runs(t, c); got != first {
		t.Errorf("want %s back, got %s (failed was %s)", first, got, second)
	}
	for range 2 {
		c.Heal("web")
		c.Reconcile()
		if got := c.ConditionLine("ConfigReady"); got != "False RolledBack "+wrong {
			t.Errorf("ConfigReady: got %s", got)
		}
		if c.Phase() != "Failed" || c.Message() != "Waiting for config ("+wrong+")" {
			t.Errorf("What is asked for is not what runs: got %s, %q", c.Phase(), c.Message())
		}
		if diff := cmp.Diff(map[string]any{"bundle": first, "state": "RolledBack", "message": wrong}, functionstest.Get(c.Claim, "status", "config").GetStructValue().AsMap()); diff != "" {
			t.Errorf("status.config: -want, +got:\n%s", diff)
		}
	}

	// Other changes continue, with the config that works.
	c.Edit("registry.example.com/hello:2", "image")
	c.Reconcile()
	if image, got := runs(t, c); got != first || image != "2" {
		t.Errorf("want image 2 and %s, got %s and %s", first, image, got)
	}

	// When the user undoes the edit, the claim is Ready again and no pod is replaced.
	c.Heal("web")
	c.Edit("1", "config", "A")
	generation := functionstest.Get(c.Observed["web"], "metadata", "generation").GetNumberValue()
	c.Settle()
	if status, _ := c.Condition("ConfigReady"); status != "True" || functionstest.Get(c.Observed["web"], "metadata", "generation").GetNumberValue() != generation {
		t.Errorf("got ConfigReady %s, generation %v of the Deployment, was %v", status, functionstest.Get(c.Observed["web"], "metadata", "generation"), generation)
	}
}

// TestConfigRollsBackWhileEdited: the pods are rolled back from a config that failed also while the
// next edit waits.
func TestConfigRollsBackWhileEdited(t *testing.T) {
	c := configured(t)
	first := c.LastGoodBundle()
	c.Edit("2", "config", "A")
	c.Reconcile()
	second := c.TakeUpConfig()
	c.Reconcile()
	c.Edit("3", "config", "A")
	c.Reconcile()
	if _, got := runs(t, c); got != second {
		t.Errorf("want %s until there is more to tell, got %s", second, got)
	}
	c.ReportAppConfig(`{bundle: `+first+`, lastGood: `+first+`, failed: {bundle: `+second+`, reason: PodFailing, message: x}, held: {bundle: `+c.WantedBundle()+`}}`, "Debouncing", "x")
	c.Reconcile()
	if _, got := runs(t, c); got != first {
		t.Errorf("want %s back, got %s", first, got)
	}
	third := c.TakeUpConfig()
	c.Reconcile()
	if _, got := runs(t, c); got != third {
		t.Errorf("want %s, got %s", third, got)
	}
}

// TestConfigFails: a first config that fails has no earlier one to roll back to, so the claim is
// Failed.
func TestConfigFails(t *testing.T) {
	c := functionstest.New(t, configuredApp)
	c.Reconcile()
	b := c.TakeUpConfig()
	c.ReportAppConfig(`{bundle: `+b+`, failed: {bundle: `+b+`, reason: PodFailing, message: x}}`, "RolloutFailed", "it does not work")
	c.Reconcile()
	if got := functionstest.Get(c.Claim, "status", "config", "state").GetStringValue(); got != "Failed" || c.Phase() != "Failed" {
		t.Errorf("got config %s, phase %s", got, c.Phase())
	}
}

// TestConfigAdded: the pods of a running application refer to a first bundle only once it exists.
func TestConfigAdded(t *testing.T) {
	c := functionstest.New(t, functionstest.SmallApp)
	c.Settle()
	c.Edit(map[string]any{"A": "1"}, "config")
	for range 3 {
		c.Reconcile()
		if _, got := runs(t, c); got != "" {
			t.Errorf("want the pods as they are until there is a bundle, got %s", got)
		}
	}
	want := c.TakeUpConfig()
	c.Reconcile()
	if _, got := runs(t, c); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestConfigMigration: a migration has the config of its claim, and is created only once the bundle
// exists, as a Job cannot be changed.
func TestConfigMigration(t *testing.T) {
	migration := func(c *crossplane) *batchv1.Job {
		for _, n := range c.ComponentNames() {
			if strings.HasPrefix(n, "migration-") {
				return functionstest.As[batchv1.Job](t, c.Observed[n])
			}
		}
		return nil
	}
	c := functionstest.New(t, functionstest.MigratedApp)
	c.Reconcile()
	c.Edit("hello", "config", "GREETING")
	c.Reconcile()
	if j := migration(c); j != nil {
		t.Errorf("want no migration before there is a bundle, got %s", j.Name)
	}
	want := c.TakeUpConfig()
	c.Reconcile()
	if _, got := runsOf(migration(c).Spec.Template.Spec); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	c.Settle()

	// With a new image and a new config, the migration waits for the new bundle too.
	first := migration(c).Name
	c.Edit("registry.example.com/hello:2", "image")
	c.Edit("ciao", "config", "GREETING")
	c.Reconcile()
	if j := migration(c); j != nil {
		t.Errorf("want no migration of image 2 yet, got %s", j.Name)
	}
	want = c.TakeUpConfig()
	c.Reconcile()
	if j := migration(c); j.Name == first {
		t.Errorf("want a migration of image 2, got %s", j.Name)
	} else if _, got := runsOf(j.Spec.Template.Spec); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	if image, _ := runs(t, c); image != "1" {
		t.Errorf("The pods wait for it: got image %s", image)
	}
	c.Settle()
	if image, got := runs(t, c); got != want || image != "2" {
		t.Errorf("want image 2 and %s, got %s and %s", want, image, got)
	}
}
