package functions_test

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
)

// takeUp the config as the provider does: its bundle is made, and has yet to
// prove itself.
func (c *cluster) takeUp() string {
	c.t.Helper()
	b := c.wantedBundle()
	c.tell(`{bundle: `+b+`, pending: `+b+`, lastGood: "`+c.lastGood()+`"}`, "RollingOut", "hello-web is on its way")
	return b
}

// rollBack what is pending, as the provider does.
func (c *cluster) rollBack(message string) {
	c.t.Helper()
	good := c.lastGood()
	c.tell(`{bundle: `+good+`, lastGood: `+good+`, failed: {bundle: `+c.wantedBundle()+`, reason: PodFailing, message: x}}`, "RolledBack", message)
}

// tell what the provider observes of an AppConfig that is not Ready.
func (c *cluster) tell(atProvider, reason, message string) {
	c.t.Helper()
	c.status("appconfig", `{atProvider: `+atProvider+`}`)
	generation := get(c.observed["appconfig"], "metadata", "generation").GetNumberValue()
	set(c.observed["appconfig"], []any{
		map[string]any{"type": "Synced", "status": "True", "observedGeneration": generation},
		map[string]any{"type": "Ready", "status": "False", "reason": reason, "message": message, "observedGeneration": generation},
	}, "status", "conditions")
}

func (c *cluster) lastGood() string {
	return get(c.observed["appconfig"], "status", "atProvider", "lastGood").GetStringValue()
}

// runs is the image and the first environment of an observed Deployment.
func runs(t *testing.T, c *cluster) (image, bundle string) {
	t.Helper()
	return runsOf(as[k8sappsv1.Deployment](t, c.observed["web"]).Spec.Template.Spec)
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

// configured is an app whose first config has proven itself.
func configured(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, configuredApp)
	c.settle()
	return c
}

// TestWebAppConfig: a claim's config is an AppConfig whose bundle the pods take.
func TestWebAppConfig(t *testing.T) {
	c := newCluster(t, configuredApp)
	c.reconcile()
	want := configv1.AppConfigParameters{
		Application: "hello", Environment: configv1.Staging, Config: map[string]string{"A": "1"}, Templating: configv1.TemplatingNone,
		Targets: []configv1.Target{{Kind: configv1.Deployment, Name: "hello-web"}},
		Rollout: &configv1.Rollout{By: configv1.ByOwner},
	}
	a := as[configv1.AppConfig](t, c.observed["appconfig"])
	if diff := cmp.Diff(want, a.Spec.ForProvider); diff != "" || a.Name != "hello-config" {
		t.Errorf("AppConfig %s: -want, +got:\n%s", a.Name, diff)
	}
	// The pods name the bundle before it is there: the kubelet waits for it.
	first := bundleOf("hello", map[string]any{"A": "1"})
	if _, got := runs(t, c); got != first {
		t.Errorf("want the pods to take %s at once, got %s", first, got)
	}
	if got := get(c.claim, "status", "config").GetStructValue().AsMap(); got["state"] != "Pending" || got["bundle"] != nil {
		t.Errorf("Nothing has been made of it yet: got %v", got)
	}

	c.settle()
	if diff := cmp.Diff(map[string]any{"bundle": first, "state": "Running"}, get(c.claim, "status", "config").GetStructValue().AsMap()); diff != "" {
		t.Errorf("status.config: -want, +got:\n%s", diff)
	}
	if got := c.verdict("ConfigReady"); got != "True Healthy" {
		t.Errorf("ConfigReady: got %s", got)
	}
	if _, got := runsOf(as[batchv1.CronJob](t, c.observed["cron-clean"]).Spec.JobTemplate.Spec.Template.Spec); got != first {
		t.Errorf("CronJobs have the same config: want %s, got %s", first, got)
	}

	c.edit(nil, "config")
	c.settle()
	if _, got := runs(t, c); got != "" || slices.Contains(c.names(), "appconfig") || get(c.claim, "status", "config") != nil {
		t.Errorf("Without config there is nothing of it: got %q, %v", got, c.names())
	}
	if got := c.verdict("ConfigReady"); got != "True Disabled Not part of this claim" {
		t.Errorf("ConfigReady: got %s", got)
	}
}

// TestWebAppConfigRollsOut: one edit of the claim is one change of its pods, once
// the provider has taken it up.
func TestWebAppConfigRollsOut(t *testing.T) {
	c := configured(t)
	before := proto.CloneOf(c.observed["web"])
	first := c.lastGood()

	c.edit("2", "config", "A")
	c.edit("registry.example.com/hello:2", "image")
	for _, when := range []string{"The config is being applied", "The provider has not seen it", "However often it is asked"} {
		rsp := c.reconcile()
		if diff := cmp.Diff(applicable(before), rsp.GetDesired().GetResources()["web"].GetResource(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: the pods stay as they are: -want, +got:\n%s", when, diff)
		}
		if status, _ := c.condition("ConfigReady"); status != "False" || c.phase() != "Deploying" {
			t.Errorf("%s: got ConfigReady %s, phase %s", when, status, c.phase())
		}
	}
	if _, got := runsOf(as[batchv1.CronJob](t, c.observed["cron-clean"]).Spec.JobTemplate.Spec.Template.Spec); got != first {
		t.Errorf("CronJobs keep a bundle that there is: want %s, got %s", first, got)
	}

	second := c.takeUp()
	c.reconcile()
	if image, got := runs(t, c); got != second || image != "2" {
		t.Errorf("Both are one change: want image 2 and %s, got %s and %s", second, image, got)
	}
	c.heal("web")
	c.reconcile()
	if got := c.verdict("ConfigReady"); got != "False Waiting" || c.phase() != "Deploying" {
		t.Errorf("It is good when the provider says so: got %s, phase %s", got, c.phase())
	}
	if diff := cmp.Diff(map[string]any{"bundle": second, "state": "RollingOut"}, get(c.claim, "status", "config").GetStructValue().AsMap()); diff != "" {
		t.Errorf("status.config: -want, +got:\n%s", diff)
	}
	c.settle()
	if got := get(c.claim, "status", "config", "state").GetStringValue(); got != "Running" || c.message() != "" {
		t.Errorf("got %s, %q", got, c.message())
	}
}

// TestWebAppConfigRollsBack: what the provider puts back the pods take, and the
// claim says what was wrong until its config is another.
func TestWebAppConfigRollsBack(t *testing.T) {
	const wrong = "Deployment hello-web: pod hello-web-1: container app keeps failing"
	c := configured(t)
	first := c.lastGood()
	c.edit("2", "config", "A")
	c.reconcile()
	second := c.takeUp()
	c.reconcile()
	c.rollBack(wrong)
	c.reconcile()
	if _, got := runs(t, c); got != first {
		t.Errorf("want %s back, got %s (failed was %s)", first, got, second)
	}
	for range 2 {
		c.heal("web")
		c.reconcile()
		if got := c.verdict("ConfigReady"); got != "False RolledBack "+wrong {
			t.Errorf("ConfigReady: got %s", got)
		}
		if c.phase() != "Failed" || c.message() != "Waiting for config ("+wrong+")" {
			t.Errorf("What is asked for is not what runs: got %s, %q", c.phase(), c.message())
		}
		if diff := cmp.Diff(map[string]any{"bundle": first, "state": "RolledBack", "message": wrong}, get(c.claim, "status", "config").GetStructValue().AsMap()); diff != "" {
			t.Errorf("status.config: -want, +got:\n%s", diff)
		}
	}

	// Other changes go on, with the config that works.
	c.edit("registry.example.com/hello:2", "image")
	c.reconcile()
	if image, got := runs(t, c); got != first || image != "2" {
		t.Errorf("want image 2 and %s, got %s and %s", first, image, got)
	}

	// Who takes the edit back is Ready again, and no pod is replaced for it.
	c.heal("web")
	c.edit("1", "config", "A")
	generation := get(c.observed["web"], "metadata", "generation").GetNumberValue()
	c.settle()
	if status, _ := c.condition("ConfigReady"); status != "True" || get(c.observed["web"], "metadata", "generation").GetNumberValue() != generation {
		t.Errorf("got ConfigReady %s, generation %v of the Deployment, was %v", status, get(c.observed["web"], "metadata", "generation"), generation)
	}
}

// TestWebAppConfigRollsBackWhileEdited: what does not work is taken from the pods
// also while the next edit waits.
func TestWebAppConfigRollsBackWhileEdited(t *testing.T) {
	c := configured(t)
	first := c.lastGood()
	c.edit("2", "config", "A")
	c.reconcile()
	second := c.takeUp()
	c.reconcile()
	c.edit("3", "config", "A")
	c.reconcile()
	if _, got := runs(t, c); got != second {
		t.Errorf("want %s until there is more to tell, got %s", second, got)
	}
	c.tell(`{bundle: `+first+`, lastGood: `+first+`, failed: {bundle: `+second+`, reason: PodFailing, message: x}, held: {bundle: `+c.wantedBundle()+`}}`, "Debouncing", "x")
	c.reconcile()
	if _, got := runs(t, c); got != first {
		t.Errorf("want %s back, got %s", first, got)
	}
	third := c.takeUp()
	c.reconcile()
	if _, got := runs(t, c); got != third {
		t.Errorf("want %s, got %s", third, got)
	}
}

// TestWebAppConfigFails: there is nothing to go back to.
func TestWebAppConfigFails(t *testing.T) {
	c := newCluster(t, configuredApp)
	c.reconcile()
	b := c.takeUp()
	c.tell(`{bundle: `+b+`, failed: {bundle: `+b+`, reason: PodFailing, message: x}}`, "RolloutFailed", "it does not work")
	c.reconcile()
	if got := get(c.claim, "status", "config", "state").GetStringValue(); got != "Failed" || c.phase() != "Failed" {
		t.Errorf("got config %s, phase %s", got, c.phase())
	}
}

// TestWebAppConfigAdded: a running app gets a config only once there is its
// bundle.
func TestWebAppConfigAdded(t *testing.T) {
	c := newCluster(t, smallApp)
	c.settle()
	c.edit(map[string]any{"A": "1"}, "config")
	for range 3 {
		c.reconcile()
		if _, got := runs(t, c); got != "" {
			t.Errorf("want the pods as they are until there is a bundle, got %s", got)
		}
	}
	want := c.takeUp()
	c.reconcile()
	if _, got := runs(t, c); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestWebAppConfigMigration: a migration has the config of its claim, and none
// that may never be made: a Job cannot be changed.
func TestWebAppConfigMigration(t *testing.T) {
	migration := func(c *cluster) *batchv1.Job {
		for _, n := range c.names() {
			if strings.HasPrefix(n, "migration-") {
				return as[batchv1.Job](t, c.observed[n])
			}
		}
		return nil
	}
	c := newCluster(t, migratedApp)
	c.reconcile()
	c.edit("hello", "config", "GREETING")
	c.reconcile()
	if j := migration(c); j != nil {
		t.Errorf("want no migration before there is a bundle, got %s", j.Name)
	}
	want := c.takeUp()
	c.reconcile()
	if _, got := runsOf(migration(c).Spec.Template.Spec); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	c.settle()

	// A new image comes with a new config: its migration, too.
	first := migration(c).Name
	c.edit("registry.example.com/hello:2", "image")
	c.edit("ciao", "config", "GREETING")
	c.reconcile()
	if j := migration(c); j != nil {
		t.Errorf("want no migration of image 2 yet, got %s", j.Name)
	}
	want = c.takeUp()
	c.reconcile()
	if j := migration(c); j.Name == first {
		t.Errorf("want a migration of image 2, got %s", j.Name)
	} else if _, got := runsOf(j.Spec.Template.Spec); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	if image, _ := runs(t, c); image != "1" {
		t.Errorf("The pods wait for it: got image %s", image)
	}
	c.settle()
	if image, got := runs(t, c); got != want || image != "2" {
		t.Errorf("want image 2 and %s, got %s and %s", want, image, got)
	}
}
