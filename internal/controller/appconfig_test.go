package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

var named = map[string]string{"app.kubernetes.io/name": "shop"}

// targets returns one workload of each kind of an application.
func targets() []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", Generation: 1, Labels: named, Annotations: map[string]string{configv1.AllowAnnotation: "shop"}}
	}
	selector := &metav1.LabelSelector{MatchLabels: named}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: named}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "a"}}}}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pod, Replicas: new(int32(1))}},
		&appsv1.StatefulSet{ObjectMeta: meta("db"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pod, Replicas: new(int32(1))}},
		&appsv1.DaemonSet{ObjectMeta: meta("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: pod}},
		&batchv1.CronJob{ObjectMeta: meta("report"), Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}}}},
	}
}

func anAppConfig() *configv1.AppConfig {
	return &configv1.AppConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: configv1.AppConfigKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", UID: "appconfig", Generation: 1, Finalizers: []string{"finalizer.managedresource.crossplane.io"}},
		Spec: configv1.AppConfigSpec{ForProvider: configv1.AppConfigParameters{
			Application: "shop", Config: map[string]string{"TITLE": "good"}, SecretRefs: []configv1.SecretReference{{Name: "db", Keys: []configv1.SecretKey{{Key: "uri", As: "DATABASE_URL"}}}},
		}},
	}
}

// lifeOfAppConfig runs an AppConfig from creation to deletion: rolled out to one workload of each
// kind, changed, rolled back, and deleted.
func lifeOfAppConfig(t *testing.T) *world {
	t.Helper()
	a := anAppConfig()
	w := newWorld(t, append(append(shop(), targets()...), a)...)
	observed := func() *configv1.AppConfigObservation { return &a.Status.AtProvider }
	pass := func() {
		t.Helper()
		if _, err := w.reconcile(t, a); err != nil {
			t.Fatal(err)
		}
	}
	change := func(f func()) {
		t.Helper()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			t.Fatal(err)
		}
		f()
		if err := w.Update(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		pass()
	}

	pass()
	first := observed().Bundle
	w.healthy(t)
	pass() // CronJobs are changed after the workloads that prove the bundle.
	pass()
	if o := observed(); o.LastGood != first || o.Pending != "" {
		t.Fatalf("want bundle %s to be good, got %+v", first, o)
	}
	for _, s := range observed().Targets {
		if s.State != configv1.TargetUpdated || s.Bundle != first {
			t.Errorf("want %s updated, got %+v", s.Name, s)
		}
	}
	d := &appsv1.Deployment{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, d); err != nil {
		t.Fatal(err)
	}
	if env := d.Spec.Template.Spec.Containers[0].Env; len(env) != 2 || d.Spec.Template.Spec.Containers[0].Image != "a" {
		t.Errorf("want two variables beside what was there, got %v", d.Spec.Template.Spec.Containers[0])
	}

	w.later += time.Hour
	change(func() { a.Spec.ForProvider.Config["TITLE"] = "bad" })
	second := observed().Bundle
	if second == first {
		t.Fatal("want another bundle")
	}
	w.sick(t)
	w.pod(t, "web-x", second, time.Now().Add(w.later), true)
	w.later += time.Second
	pass()
	if o := observed(); o.Bundle != first || o.Failed == nil || o.Failed.Bundle != second {
		t.Fatalf("want %s to be put back, got %+v", first, o)
	}
	if log := observed().Failed.Log; log != "cannot log in as u with p: bad title" {
		t.Errorf("want the log, got %q", log)
	}
	// The StatefulSet's pod with the bad bundle blocks the rollout of the good one.
	w.pod(t, "db-0", second, time.Now(), false)
	pass()
	w.later += time.Minute
	pass()
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "db-0"}, &corev1.Pod{}); !kerrors.IsNotFound(err) {
		t.Errorf("want the pod that is in the way gone, got %v", err)
	}

	w.healthy(t)
	w.later += time.Hour
	change(func() {
		a.Spec.ForProvider.Config["TITLE"] = "better"
		a.Spec.ForProvider.Targets = []configv1.Target{{Kind: configv1.Deployment, Name: "web"}, {Kind: configv1.StatefulSet, Name: "db"}, {Kind: configv1.DaemonSet, Name: "agent"}, {Kind: configv1.CronJob, Name: "report"}}
	})
	w.healthy(t)
	pass()
	w.later += time.Hour
	pass()
	if got := w.bundles(t); len(got) == 0 || strings.Contains(strings.Join(got, " "), second) {
		t.Errorf("want the bad bundle gone, got %v", got)
	}

	if err := w.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
			t.Fatal(err)
		}
		pass()
	}
	if diff := cmp.Diff([]string{observed().Bundle}, w.bundles(t)); diff != "" {
		t.Errorf("want what pods run to stay, and no more: -want, +got:\n%s", diff)
	}
	return w
}

// healthy sets the status of all workloads to healthy.
func (w *world) healthy(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	d, s, a := &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}
	for name, o := range map[string]client.Object{"web": d, "db": s, "agent": a} {
		if err := w.Get(ctx, client.ObjectKey{Namespace: "shop", Name: name}, o); err != nil {
			t.Fatal(err)
		}
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}
	s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, CurrentReplicas: 1, CurrentRevision: "x", UpdateRevision: "x"}
	a.Status = appsv1.DaemonSetStatus{ObservedGeneration: a.Generation}
	for _, o := range []client.Object{d, s, a} {
		if err := w.Status().Update(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
}

// sick sets the status of workloads with pods that are not ready.
func (w *world) sick(t testing.TB) {
	t.Helper()
	d, s := &appsv1.Deployment{}, &appsv1.StatefulSet{}
	for name, o := range map[string]client.Object{"web": d, "db": s} {
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, o); err != nil {
			t.Fatal(err)
		}
	}
	d.Status.ReadyReplicas, d.Status.AvailableReplicas, s.Status.ReadyReplicas, s.Status.AvailableReplicas = 0, 0, 0, 0
	for _, o := range []client.Object{d, s} {
		if err := w.Status().Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// pod creates a pod that runs a bundle and is not ready.
func (w *world) pod(t testing.TB, name, bundle string, since time.Time, crashes bool) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: named, CreationTimestamp: metav1.NewTime(since), Annotations: map[string]string{configv1.BundleAnnotationPrefix + "shop": bundle}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app"}}},
	}
	if crashes {
		p.Status.ContainerStatuses[0].RestartCount = 2
		p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	}
	if err := w.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// bundles returns the names of all bundles.
func (w *world) bundles(t testing.TB) []string {
	t.Helper()
	l := &corev1.ConfigMapList{}
	if err := w.List(t.Context(), l, client.HasLabels{configv1.AppConfigLabel}); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range l.Items {
		if strings.Count(c.Name, "-") > 1 {
			out = append(out, c.Name)
		}
	}
	return out
}
