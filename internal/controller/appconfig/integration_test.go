package appconfig_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

func TestIntegration(t *testing.T) {
	c := newCluster(t)
	for name, test := range map[string]func(*testing.T, *cluster){
		"Life":     testLife,
		"Rollback": testRollback,
		"Storm":    testStorm,
		"Killed":   testKilled,
		"Reader":   testReader,
		"Refused":  testRefused,
		"Fights":   testFights,
		"Owner":    testOwner,
		"Bound":    testBound,
		"Planted":  testPlanted,
		"Order":    testOrder,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// testLife: one workload of each kind gets all keys, changes of a Secret and of the config are one
// rollout, and what pods need stays when the AppConfig is deleted.
func testLife(t *testing.T, c *cluster) {
	const ns = "life"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"password": "one"}}
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Labels: labels("agent"), Annotations: open}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels("agent")}, Template: template("agent", corev1.Container{})}}
	a := appConfig("one")
	a.Spec.ForProvider.SecretRefs = []configv1.SecretReference{{Name: "db", Keys: []configv1.SecretKey{{Key: "password", As: "PASSWORD"}}}}
	c.namespace(t, ns, secret, deployment("web", corev1.Container{}), statefulSet("db"), daemon, cronJob("report"), a)
	first := c.is(t, ns, "Available")
	if got := len(first.Status.AtProvider.Targets); got != 4 {
		t.Errorf("want four targets, got %+v", first.Status.AtProvider.Targets)
	}
	cron := &batchv1.CronJob{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "report"}, cron); err != nil {
		t.Fatal(err)
	}
	env := cron.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env
	if len(env) != 2 || env[0].ValueFrom.SecretKeyRef == nil || env[1].ValueFrom.ConfigMapKeyRef == nil {
		t.Errorf("want a variable of the Secret and one of the ConfigMap, got %+v", env)
	}

	before := c.replicaSets(t, ns)
	secret.StringData = map[string]string{"password": "two"}
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	c.edit(t, ns, retitle("two"))
	planetest.Eventually(t, soon, "both changes are in a bundle", func() error {
		o := c.appConfig(t, ns).Status.AtProvider
		cm, s := &corev1.ConfigMap{}, &corev1.Secret{}
		key := client.ObjectKey{Namespace: ns, Name: o.LastGood}
		if err := errors.Join(c.Get(t.Context(), key, cm), c.Get(t.Context(), key, s)); err != nil {
			return err
		}
		if cm.Data["TITLE"] != "two" || string(s.Data["PASSWORD"]) != "two" {
			return fmt.Errorf("got %v and %d keys of the Secret", cm.Data, len(s.Data))
		}
		return nil
	})
	if n := c.replicaSets(t, ns) - before; n > 2 {
		t.Errorf("want two rollouts at most, got %d", n)
	}
	stable := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "shop-config"}, stable); err != nil || stable.Data["TITLE"] != "two" {
		t.Errorf("want the stable name to hold what runs, got %v, %v", stable.Data, err)
	}

	last := c.is(t, ns, "Available")
	if err := c.Delete(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	planetest.Eventually(t, soon, "the AppConfig is gone", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(last), &configv1.AppConfig{}); err != nil {
			return client.IgnoreNotFound(err)
		}
		return errors.New("it is there")
	})
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: last.Status.AtProvider.Bundle}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("want what pods run to stay, got %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "shop-config"}, &corev1.ConfigMap{}); !kerrors.IsNotFound(err) {
		t.Errorf("want what nothing refers to gone, got %v", err)
	}
}

// testBound: a Secret with an annotation that binds it to a place holds the platform's credentials
// of a store, and is not copied into a bundle, which would lack the annotation.
func testBound(t *testing.T, c *cluster) {
	const ns = "bound"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "orders-dump-store", Annotations: (&backup.Bounds{Of: "ClusterProviderConfig default"}).Annotations()}, StringData: map[string]string{"AWS_ACCESS_KEY_ID": "key"}}
	a := appConfig("one")
	a.Spec.ForProvider.SecretRefs = []configv1.SecretReference{{Name: secret.Name}}
	c.namespace(t, ns, secret, a)
	got := c.is(t, ns, "InvalidConfig")
	const want = "Secret orders-dump-store holds the platform's credentials of an object store, which are for backups alone: remove it from secretRefs"
	if r := got.GetCondition("Rendered"); string(r.Reason) != configv1.ReasonSecretNotAllowed || r.Message != want {
		t.Errorf("want %s: %q, got %+v", configv1.ReasonSecretNotAllowed, want, r)
	}
	l := &corev1.SecretList{}
	if err := c.List(t.Context(), l, client.InNamespace(ns)); err != nil || len(l.Items) != 1 {
		t.Errorf("want no Secret but that one, got %d, %v", len(l.Items), err)
	}
}

// testPlanted: a user who may create ConfigMaps can predict the name of a bundle and create it
// first. Its content does not reach pods.
func testPlanted(t *testing.T, c *cluster) {
	const ns = "planted"
	a := appConfig("one")
	c.namespace(t, ns, deployment("web", corev1.Container{}), a)
	first := c.is(t, ns, "Available").Status.AtProvider.Bundle

	plant := func(title string, immutable, labelled bool) *corev1.ConfigMap {
		t.Helper()
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: appconfig.Name("shop", map[string]string{"TITLE": title}), Labels: map[string]string{configv1.AppConfigLabel: "shop"}},
			Data:       map[string]string{"TITLE": "evil"}, Immutable: &immutable,
		}
		if !immutable {
			cm.Data["TITLE"] = title
		}
		if !labelled {
			cm.Labels = nil
		}
		if err := c.Create(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		return cm
	}
	for _, tc := range []struct {
		title               string
		immutable, labelled bool
		why                 string
	}{
		{"two", true, true, " is in the way: it has the name of this configuration, and another content. Check where it came from, and delete it"},
		{"three", false, true, " is in the way: it has the name of this configuration, and can be changed. Check where it came from, and delete it"},
		{"four", true, false, " is in the way: it has the name of this configuration, and another content. Check where it came from, and delete it"},
		{"five", false, false, " is in the way: it has the name of this configuration, and can be changed. Check where it came from, and delete it"},
	} {
		planted := plant(tc.title, tc.immutable, tc.labelled)
		c.edit(t, ns, retitle(tc.title))
		got := c.is(t, ns, "InvalidConfig")
		if r := got.GetCondition("Rendered"); string(r.Reason) != configv1.ReasonBundleTaken || r.Message != "ConfigMap "+planted.Name+tc.why {
			t.Errorf("%s: want %s, got %+v", tc.title, configv1.ReasonBundleTaken, r)
		}
		web := &appsv1.Deployment{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, web); err != nil {
			t.Fatal(err)
		}
		if ref := web.Spec.Template.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef; ref.Name != first {
			t.Errorf("%s: want pods to run %s still, got %s", tc.title, first, ref.Name)
		}
		if err := c.Delete(t.Context(), planted); err != nil {
			t.Fatal(err)
		}
		planetest.Eventually(t, soon, "the right one is made and runs", func() error {
			o := c.is(t, ns, "Available").Status.AtProvider
			if o.LastGood != planted.Name {
				return fmt.Errorf("%s runs", o.LastGood)
			}
			first = o.LastGood
			return nil
		})
	}
}

// testRollback: a bundle that crashes is rolled back at once, one that hangs at its deadline, also
// in StatefulSets, and neither is retried.
func testRollback(t *testing.T, c *cluster) {
	const ns = "rollback"
	c.namespace(t, ns, deployment("web", corev1.Container{}), statefulSet("db"), appConfig("one"))
	good := c.is(t, ns, "Available").Status.AtProvider.Bundle
	for _, bad := range []string{"crash", "hang"} {
		// The next rollout is not delayed because of the last one.
		c.age(t, ns)
		c.edit(t, ns, retitle(bad))
		a := c.is(t, ns, "RolledBack")
		if o := a.Status.AtProvider; o.Bundle != good || o.LastGood != good || o.Failed.Message == "" {
			t.Errorf("want %s to be put back, got %+v", good, o)
		}
		planetest.Eventually(t, soon, "all pods are healthy again after "+bad, func() error { return c.allRun(t, ns, good) })
		planetest.Eventually(t, soon, "all targets are updated", func() error {
			targets := c.appConfig(t, ns).Status.AtProvider.Targets
			if slices.ContainsFunc(targets, func(s configv1.TargetStatus) bool { return s.State != configv1.TargetUpdated }) {
				return fmt.Errorf("got %v", targets)
			}
			return nil
		})
		before := c.appConfig(t, ns)
		time.Sleep(5 * time.Second)
		if after := c.appConfig(t, ns); after.Status.AtProvider.Bundle != good || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("want nothing to happen any more, got\n%+v\nand then\n%+v", before.Status, after.Status)
		}
	}
}

// testStorm: twenty edits in ten seconds cause two rollouts.
func testStorm(t *testing.T, c *cluster) {
	const ns = "storm"
	c.namespace(t, ns, deployment("web", corev1.Container{}), appConfig("0"))
	c.is(t, ns, "Available")
	c.age(t, ns)
	before := c.replicaSets(t, ns)
	for i := range 20 {
		c.edit(t, ns, retitle(fmt.Sprintf("edit %d", i)))
		time.Sleep(500 * time.Millisecond)
	}
	last := c.is(t, ns, "Available")
	cm := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: last.Status.AtProvider.LastGood}, cm); err != nil || cm.Data["TITLE"] != "edit 19" {
		t.Errorf("want the newest to run, got %v, %v", cm.Data, err)
	}
	if n := c.replicaSets(t, ns) - before; n != 2 {
		t.Errorf("want two rollouts, got %d", n)
	}
}

// testKilled: the provider is killed at several points of a rollout, and the next one continues it.
// A restart by itself changes nothing.
func testKilled(t *testing.T, c *cluster) {
	const ns = "killed"
	c.namespace(t, ns, deployment("web", corev1.Container{}), statefulSet("db"), appConfig("0"))
	c.is(t, ns, "Available")
	for i, after := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		c.age(t, ns)
		title := fmt.Sprintf("killed %d", i)
		c.edit(t, ns, retitle(title))
		time.Sleep(after)
		c.kill()
		c.start(t)
		a := c.is(t, ns, "Available")
		cm := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: a.Status.AtProvider.LastGood}, cm); err != nil || cm.Data["TITLE"] != title {
			t.Errorf("want %s to run, got %v, %v", title, cm.Data, err)
		}
		if n := c.replicaSets(t, ns); n != i+3 {
			t.Errorf("want one rollout for each change, got %d for %d", n-2, i+1)
		}
	}
	c.kill()
	before := c.replicaSets(t, ns)
	c.edit(t, ns, retitle("killed 4"))
	c.start(t)
	c.is(t, ns, "Available")
	if n := c.replicaSets(t, ns); n != before {
		t.Errorf("want no rollout for nothing, got %d", n-before)
	}
}

// testReader: a workload that reads the stable name is adopted without a restart.
func testReader(t *testing.T, c *cluster) {
	const ns = "reader"
	web := deployment("web", corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "shop-config"}}}}})
	c.namespace(t, ns, web, appConfig("one"))
	c.is(t, ns, "Available")
	if n := c.replicaSets(t, ns); n != 1 {
		t.Errorf("want no rollout at first adoption, got %d", n-1)
	}
	c.age(t, ns)
	c.edit(t, ns, retitle("two"))
	a := c.is(t, ns, "Available")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
		t.Fatal(err)
	}
	if got := web.Spec.Template.Annotations[appconfig.Annotation("shop")]; got != a.Status.AtProvider.Bundle || len(web.Spec.Template.Spec.Containers[0].Env) != 0 {
		t.Errorf("want the annotation and no more, got %q and %v", got, web.Spec.Template.Spec.Containers[0].Env)
	}
	stable := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "shop-config"}, stable); err != nil || stable.Data["TITLE"] != "two" {
		t.Errorf("want the stable name to hold what runs, got %v, %v", stable.Data, err)
	}
	// A manual change is reverted.
	stable.Data["TITLE"] = "hand"
	if err := c.Update(t.Context(), stable); err != nil {
		t.Fatal(err)
	}
	planetest.Eventually(t, soon, "it is put back", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(stable), stable); err != nil {
			return err
		}
		if stable.Data["TITLE"] != "two" {
			return fmt.Errorf("got %v", stable.Data)
		}
		return nil
	})
}

// testRefused: a target that must not be changed is reported, and the others are rolled out.
func testRefused(t *testing.T, c *cluster) {
	const ns = "refused"
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "locked"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update}, Rule: admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: `object.metadata.name != "locked" || request.userInfo.username != "provider"`, Message: "it is locked", Reason: new(metav1.StatusReasonForbidden)}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "locked"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "locked", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}}}
	c.create(t, policy)
	c.create(t, binding)
	taken := deployment("taken", corev1.Container{})
	c.namespace(t, ns, deployment("locked", corev1.Container{}), taken, deployment("free", corev1.Container{}))
	// Another field manager owns a field of the provider.
	c.applyAs(t, "another-manager", map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": ns, "name": "taken"},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{appconfig.Annotation("shop"): "mine"}}}},
	})
	// The API server enforces the policy only after a moment.
	time.Sleep(2 * time.Second)
	a := appConfig("one")
	a.Namespace = ns
	c.create(t, a)
	a = c.is(t, ns, "TargetsUnavailable")
	want := map[string]configv1.TargetStatus{
		"locked": {State: configv1.TargetForbidden, Reason: configv1.ReasonForbidden},
		"taken":  {State: configv1.TargetConflict, Reason: configv1.ReasonFieldManagerConflict},
		"free":   {State: configv1.TargetUpdated},
	}
	for _, s := range a.Status.AtProvider.Targets {
		if w := want[s.Name]; s.State != w.State || s.Reason != w.Reason {
			t.Errorf("want %s %s %s, got %+v", s.Name, w.State, w.Reason, s)
		}
		if s.Name == "taken" && !strings.Contains(s.Message, "another-manager") {
			t.Errorf("want the other manager's name, got %q", s.Message)
		}
	}
	if a.Status.AtProvider.LastGood == "" {
		t.Errorf("want the rollout to have ended, got %+v", a.Status.AtProvider)
	}
}

// testFights: a client that applies the workload again and again does not remove the provider's
// fields.
func testFights(t *testing.T, c *cluster) {
	const ns = "fights"
	c.namespace(t, ns)
	object := func(image string) map[string]any {
		return map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": ns, "name": "web", "labels": map[string]any{"app.kubernetes.io/name": "shop"}, "annotations": map[string]any{configv1.AllowAnnotation: "shop"}},
			"spec": map[string]any{
				"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": image, "env": []any{map[string]any{"name": "OWN", "value": "x"}}}}},
				},
			},
		}
	}
	c.applyAs(t, "crossplane", object("one"))
	a := appConfig("one")
	a.Namespace = ns
	c.create(t, a)
	c.is(t, ns, "Available")
	d := &appsv1.Deployment{}
	for _, image := range []string{"one", "two"} {
		c.applyAs(t, "crossplane", object(image))
		time.Sleep(2 * time.Second)
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "web"}, d); err != nil {
			t.Fatal(err)
		}
		if env := d.Spec.Template.Spec.Containers[0].Env; len(env) != 2 {
			t.Errorf("want both variables, got %v", env)
		}
	}
	// One for the AppConfig and one for the image.
	if d.Generation != 3 {
		t.Errorf("want no fight, got generation %d", d.Generation)
	}
}

// testOwner: with rollout.by Owner the provider changes no target, and waits until the owner has
// changed it.
func testOwner(t *testing.T, c *cluster) {
	const ns = "owner"
	name := appconfig.Name("shop", map[string]string{"TITLE": "one"})
	of := func(bundle string) corev1.Container {
		return corev1.Container{Env: []corev1.EnvVar{{Name: "TITLE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: bundle}, Key: "TITLE"}}}}}
	}
	a := appConfig("one")
	a.Spec.ForProvider.Rollout.By = configv1.ByOwner
	// The Deployment names the bundle before it exists.
	web := deployment("web", of(name))
	c.namespace(t, ns, web, a)
	if got := c.is(t, ns, "Available").Status.AtProvider; got.Bundle != name {
		t.Fatalf("want bundle %s, got %+v", name, got)
	}
	c.age(t, ns)
	c.edit(t, ns, retitle("hang"))
	a = c.is(t, ns, "RollingOut")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
		t.Fatal(err)
	}
	if web.Generation != 1 {
		t.Errorf("want the Deployment left alone, got generation %d", web.Generation)
	}
	web.Spec.Template.Spec.Containers[0].Env = of(a.Status.AtProvider.Bundle).Env
	if err := c.Update(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	if got := c.is(t, ns, "RolledBack").Status.AtProvider; got.Bundle != name {
		t.Errorf("want %s to be named again, got %+v", name, got)
	}
}

// testOrder: targets are changed one after the other, and only the first one gets a bad bundle.
func testOrder(t *testing.T, c *cluster) {
	const ns = "order"
	a := appConfig("one")
	a.Spec.ForProvider.Rollout.Order = configv1.Sequential
	a.Spec.ForProvider.Targets = []configv1.Target{{Kind: configv1.Deployment, Name: "z"}, {Kind: configv1.Deployment, Name: "a"}, {Kind: configv1.CronJob, Name: "report"}}
	c.namespace(t, ns, deployment("z", corev1.Container{}), deployment("a", corev1.Container{}), cronJob("report"), a)
	c.is(t, ns, "Available")
	generation := func(o client.Object, name string) int64 {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); err != nil {
			t.Fatal(err)
		}
		return o.GetGeneration()
	}
	second, cron := generation(&appsv1.Deployment{}, "a"), generation(&batchv1.CronJob{}, "report")
	c.age(t, ns)
	c.edit(t, ns, retitle("crash"))
	c.is(t, ns, "RolledBack")
	if got := generation(&appsv1.Deployment{}, "a"); got != second {
		t.Errorf("want the second target left alone, got generation %d", got)
	}
	if got := generation(&batchv1.CronJob{}, "report"); got != cron {
		t.Errorf("want the CronJob left alone, got generation %d", got)
	}
}
