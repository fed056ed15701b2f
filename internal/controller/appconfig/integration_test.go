package appconfig_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// cluster is a control plane without nodes, with the provider beside it. What a
// kubelet would do to the pods is played: those whose TITLE begins with "hang"
// never become ready, those whose begins with "crash" crash.
type cluster struct {
	client.Client

	plane    *plane.Plane
	binary   string
	provider *exec.Cmd
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	p, admin := planetest.Installed(t, "../../..", true)
	c := &cluster{Client: admin, plane: p, binary: filepath.Join(t.TempDir(), "provider")}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-p", "1", "-o", c.binary, "../../../cmd/provider").CombinedOutput(); err != nil {
		t.Fatalf("cannot build the provider: %v\n%s", err, out)
	}
	c.start(t)
	t.Cleanup(c.kill)
	go c.kubelet(t.Context())
	return c
}

// start the provider.
func (c *cluster) start(t *testing.T) {
	t.Helper()
	kubeconfig, err := c.plane.Kubeconfig(plane.Provider)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(filepath.Dir(c.binary), "provider.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	c.provider = exec.Command(c.binary, "--no-leader-election", "--metrics-address=0", "--health-address=0") //nolint:noctx // It is stopped by kill.
	c.provider.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	c.provider.Stdout, c.provider.Stderr = log, log
	c.provider.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the provider's log:\n%s", b[max(0, len(b)-6000):])
		}
	})
}

// kill the provider, without a warning.
func (c *cluster) kill() {
	_ = c.provider.Process.Kill()
	_ = c.provider.Wait()
}

// kubelet plays what nodes do to pods.
func (c *cluster) kubelet(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods); err != nil {
			continue
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; len(p.Status.ContainerStatuses) == 0 {
				c.run(ctx, p)
			}
		}
	}
}

// run a pod: its configuration decides what becomes of it.
func (c *cluster) run(ctx context.Context, p *corev1.Pod) {
	title, ok := c.title(ctx, p)
	if !ok {
		return // A container waits until its configuration is there.
	}
	s := corev1.ContainerStatus{Name: "app", Image: "a", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
	if strings.HasPrefix(title, "hang") {
		s.Ready = false
	}
	if strings.HasPrefix(title, "crash") {
		s.Ready, s.RestartCount = false, 3
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	}
	is := corev1.ConditionFalse
	if s.Ready {
		is = corev1.ConditionTrue
	}
	p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, []corev1.ContainerStatus{s}
	for _, t := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: is, LastTransitionTime: metav1.Now()})
	}
	// The next round tries again.
	_ = c.Status().Update(ctx, p)
}

// title of a pod; false while what it refers to is not there.
func (c *cluster) title(ctx context.Context, p *corev1.Pod) (string, bool) {
	for _, e := range p.Spec.Containers[0].Env {
		if e.ValueFrom == nil || e.ValueFrom.ConfigMapKeyRef == nil {
			continue
		}
		r, cm := e.ValueFrom.ConfigMapKeyRef, &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: r.Name}, cm); err != nil {
			return "", false
		}
		if e.Name == "TITLE" {
			return cm.Data[r.Key], true
		}
	}
	return "", true
}

// namespace of a test, with workloads of an application.
func (c *cluster) namespace(t *testing.T, name string, objects ...client.Object) {
	t.Helper()
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	for _, o := range objects {
		o.SetNamespace(name)
		c.create(t, o)
	}
}

func (c *cluster) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func labels(app string) map[string]string {
	return map[string]string{"app": app, "app.kubernetes.io/name": "shop"}
}

func template(app string, container corev1.Container) corev1.PodTemplateSpec {
	container.Name, container.Image = "app", "a"
	container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels(app)}, Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
}

func deployment(name string, container corev1.Container) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name)},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels(name)}, Template: template(name, container)},
	}
}

func statefulSet(name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name)},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels(name)}, Template: template(name, corev1.Container{})},
	}
}

func cronJob(name string) *batchv1.CronJob {
	pod := template(name, corev1.Container{})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name)},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}}},
	}
}

func appConfig(title string) *configv1.AppConfig {
	return &configv1.AppConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: configv1.AppConfigSpec{ForProvider: configv1.AppConfigParameters{
			Application: "shop", Config: map[string]string{"TITLE": title},
			Rollout: &configv1.Rollout{ProgressDeadline: &metav1.Duration{Duration: 10 * time.Second}},
		}},
	}
}

// soon is how long anything may take.
const soon = 60 * time.Second

func (c *cluster) appConfig(t *testing.T, namespace string) *configv1.AppConfig {
	t.Helper()
	a := &configv1.AppConfig{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shop"}, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// edit an AppConfig, whoever else writes to it.
func (c *cluster) edit(t *testing.T, namespace string, change func(*configv1.AppConfigParameters)) {
	t.Helper()
	for {
		a := c.appConfig(t, namespace)
		change(&a.Spec.ForProvider)
		err := c.Update(t.Context(), a)
		if err == nil {
			return
		}
		if !kerrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
}

func retitle(title string) func(*configv1.AppConfigParameters) {
	return func(p *configv1.AppConfigParameters) { p.Config["TITLE"] = title }
}

// is waits until an AppConfig's Ready has a reason, of its present generation.
func (c *cluster) is(t *testing.T, namespace, reason string) *configv1.AppConfig {
	t.Helper()
	var a *configv1.AppConfig
	planetest.Eventually(t, soon, "the reason is "+reason, func() error {
		a = c.appConfig(t, namespace)
		if r := a.GetCondition("Ready"); string(r.Reason) != reason || r.ObservedGeneration != a.Generation {
			return fmt.Errorf("%s: %s\n%+v", r.Reason, r.Message, a.Status.AtProvider)
		}
		return nil
	})
	return a
}

func (c *cluster) replicaSets(t *testing.T, namespace string) int {
	t.Helper()
	l := &appsv1.ReplicaSetList{}
	if err := c.List(t.Context(), l, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return len(l.Items)
}

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
		"Order":    testOrder,
	} {
		t.Run(name, func(t *testing.T) { test(t, c) })
	}
}

// testLife: one workload of each kind gets all keys, a Secret's change is one
// rollout with the config's, and what pods need outlives the AppConfig.
func testLife(t *testing.T, c *cluster) {
	const ns = "life"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "db"}, StringData: map[string]string{"password": "one"}}
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent", Labels: labels("agent")}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels("agent")}, Template: template("agent", corev1.Container{})}}
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

// testRollback: what crashes is taken back at once, what hangs at its deadline, in
// StatefulSets too, and neither is tried again.
func testRollback(t *testing.T, c *cluster) {
	const ns = "rollback"
	c.namespace(t, ns, deployment("web", corev1.Container{}), statefulSet("db"), appConfig("one"))
	good := c.is(t, ns, "Available").Status.AtProvider.Bundle
	for _, bad := range []string{"crash", "hang"} {
		// The next one is not held back by the one before.
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

// age lets a rollout have begun long ago.
func (c *cluster) age(t *testing.T, namespace string) {
	t.Helper()
	planetest.Eventually(t, soon, "the status is written", func() error {
		a := c.appConfig(t, namespace)
		a.Status.AtProvider.LastStarted = new(metav1.NewTime(time.Now().Add(-time.Hour)))
		return c.Status().Update(t.Context(), a)
	})
}

// allRun says which pod of a namespace is not ready, or does not run a bundle.
func (c *cluster) allRun(t *testing.T, namespace, bundle string) error {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !ready || p.Annotations[appconfig.Annotation("shop")] != bundle {
			return fmt.Errorf("%s: ready %t, %s", p.Name, ready, p.Annotations[appconfig.Annotation("shop")])
		}
	}
	if len(pods.Items) == 0 {
		return errors.New("there are no pods")
	}
	return nil
}

// testStorm: twenty edits in ten seconds are two rollouts.
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

// testKilled: the provider is killed at moments of a rollout, and each one that
// follows goes on. A start of its own changes nothing.
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

// testReader: what reads the stable name is adopted without a restart.
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
	// What is changed by hand is put back.
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

// testRefused: a target that may not be changed is told, and the others go on.
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
	// Somebody else owns a field that is ours.
	c.applyAs(t, "somebody", map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": ns, "name": "taken"},
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{appconfig.Annotation("shop"): "mine"}}}},
	})
	// The policy needs a moment to be known.
	time.Sleep(2 * time.Second)
	a := appConfig("one")
	a.Namespace = ns
	c.create(t, a)
	a = c.is(t, ns, "TargetsNotReached")
	want := map[string]configv1.TargetState{"locked": configv1.TargetForbidden, "taken": configv1.TargetConflict, "free": configv1.TargetUpdated}
	for _, s := range a.Status.AtProvider.Targets {
		if s.State != want[s.Name] {
			t.Errorf("want %s %s, got %+v", s.Name, want[s.Name], s)
		}
		if s.Name == "taken" && !strings.Contains(s.Message, "somebody") {
			t.Errorf("want the other manager's name, got %q", s.Message)
		}
	}
	if a.Status.AtProvider.LastGood == "" {
		t.Errorf("want the rollout to have ended, got %+v", a.Status.AtProvider)
	}
}

func (c *cluster) applyAs(t *testing.T, manager string, object map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}

// testFights: whoever applies the workload again and again takes nothing away.
func testFights(t *testing.T, c *cluster) {
	const ns = "fights"
	c.namespace(t, ns)
	object := func(image string) map[string]any {
		return map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": ns, "name": "web", "labels": map[string]any{"app.kubernetes.io/name": "shop"}},
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

// testOwner: the provider changes no target, and waits until its owner has.
func testOwner(t *testing.T, c *cluster) {
	const ns = "owner"
	name := appconfig.Name("shop", map[string]string{"TITLE": "one"})
	of := func(bundle string) corev1.Container {
		return corev1.Container{Env: []corev1.EnvVar{{Name: "TITLE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: bundle}, Key: "TITLE"}}}}}
	}
	a := appConfig("one")
	a.Spec.ForProvider.Rollout.By = configv1.ByOwner
	// The Deployment names the bundle before it is there.
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

// testOrder: one target after the other, and no more than one that is bad.
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
