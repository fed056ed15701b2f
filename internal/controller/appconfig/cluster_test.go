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

// cluster is a control plane without nodes, and the provider beside it. The kubelet's changes to
// pods are simulated: a pod whose TITLE begins with "hang" never becomes ready, and one whose TITLE
// begins with "crash" crashes.
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

// start starts the provider.
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

// kill kills the provider without a graceful shutdown.
func (c *cluster) kill() {
	_ = c.provider.Process.Kill()
	_ = c.provider.Wait()
}

// kubelet simulates what nodes do to pods.
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

// run starts a pod. Its configuration decides whether it becomes ready.
func (c *cluster) run(ctx context.Context, p *corev1.Pod) {
	title, ok := c.title(ctx, p)
	if !ok {
		return // a container waits until its configuration exists
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
	// A failure is retried in the next round.
	_ = c.Status().Update(ctx, p)
}

// title returns the TITLE of a pod, and false while a ConfigMap that it refers to is missing.
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

// namespace creates a namespace with the workloads of an application.
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

// open are the annotations that let the AppConfig of the tests change a workload.
var open = map[string]string{configv1.AllowAnnotation: "shop"}

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
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name), Annotations: open},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels(name)}, Template: template(name, container)},
	}
}

func statefulSet(name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name), Annotations: open},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels(name)}, Template: template(name, corev1.Container{})},
	}
}

func cronJob(name string) *batchv1.CronJob {
	pod := template(name, corev1.Container{})
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(name), Annotations: open},
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

// soon is how long each expected change may take.
const soon = 60 * time.Second

func (c *cluster) appConfig(t *testing.T, namespace string) *configv1.AppConfig {
	t.Helper()
	a := &configv1.AppConfig{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shop"}, a); err != nil {
		t.Fatal(err)
	}
	return a
}

// edit changes an AppConfig, and retries on conflicts with other writers.
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

// is waits until the AppConfig's Ready condition has a reason for the current generation.
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

// age moves the start of the last rollout to an hour ago.
func (c *cluster) age(t *testing.T, namespace string) {
	t.Helper()
	planetest.Eventually(t, soon, "the status is written", func() error {
		a := c.appConfig(t, namespace)
		a.Status.AtProvider.LastStarted = new(metav1.NewTime(time.Now().Add(-time.Hour)))
		return c.Status().Update(t.Context(), a)
	})
}

// allRun returns an error if a pod of a namespace is not ready or does not run the bundle.
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

func (c *cluster) applyAs(t *testing.T, manager string, object map[string]any) {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
}
