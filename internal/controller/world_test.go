package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	storeappsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/controller/appconfig"
	"github.com/storeplane/storeplane/internal/controller/backup"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/restore"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/images"
)

// world is an API server that records the requests to it.
type world struct {
	client.WithWatch

	// provider is the client whose requests are recorded, unlike the tests' own. What reader lists
	// is not watched.
	provider, reader client.Client

	// appconfigs keeps what it did before, and later is how far its clock is ahead.
	appconfigs *appconfig.Connector
	later      time.Duration

	asked map[string]map[string]bool // verbs by group/resource
}

func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, backupv1.SchemeBuilder.AddToScheme, configv1.SchemeBuilder.AddToScheme, storeplanev1.SchemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, claim := range []schema.GroupVersionKind{
		platformv1.GroupVersion.WithKind(platformv1.EcommercePlatformKind),
		storeappsv1.GroupVersion.WithKind(storeappsv1.DatabaseClusterKind),
		storeappsv1.GroupVersion.WithKind(storeappsv1.WebAppKind),
	} {
		scheme.AddKnownTypeWithName(claim, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(claim.GroupVersion().WithKind(claim.Kind+"List"), &unstructured.UnstructuredList{})
	}

	w := &world{asked: map[string]map[string]bool{}}
	w.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&backupv1.Backup{}, &backupv1.Restore{}, &configv1.AppConfig{}, &batchv1.CronJob{}).Build()
	w.provider = interceptor.NewClient(w.WithWatch, w.ask(scheme, "get", "list", "watch"))
	w.reader = interceptor.NewClient(w.WithWatch, w.ask(scheme, "list"))
	k := kube.Kube{Client: w.provider, Reader: w.reader}
	w.appconfigs = appconfig.NewConnector(k, w.logs, budget, event.NewNopRecorder(), telemetry.New(prometheus.NewRegistry()).AppConfigs)
	w.appconfigs.Now = func() time.Time { return time.Now().Add(w.later) }
	return w
}

// budget is the number of concurrent rollouts of a namespace.
const budget = 20

// note records a request.
func (w *world) note(gvk schema.GroupVersionKind, sub string, verbs ...string) {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	key := gvk.Group + "/" + plural.Resource + sub
	if w.asked[key] == nil {
		w.asked[key] = map[string]bool{}
	}
	for _, v := range verbs {
		w.asked[key][v] = true
	}
}

// logs returns the log of a crashing pod.
func (w *world) logs(context.Context, string, string, string, bool) (string, error) {
	w.note(corev1.SchemeGroupVersion.WithKind("Pod"), "/log", "get")
	return "cannot log in as u with p: bad title\n", nil
}

// ask returns functions that record each request. A list request counts as the given verbs.
func (w *world) ask(scheme *runtime.Scheme, list ...string) interceptor.Funcs {
	note := w.note
	of := func(o runtime.Object) schema.GroupVersionKind {
		gvk, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			panic(err)
		}
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		return gvk
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			note(of(o), "", "get")
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			// What is listed comes from a cache, which also watches, except with the reader.
			note(of(l), "", list...)
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			note(of(o), "", "create")
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-of-" + o.GetName()))
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			note(of(o), "", "update")
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			note(of(o), "", "delete")
			// The fake client does not support preconditions.
			return c.Delete(ctx, o)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			b, err := json.Marshal(o)
			if err != nil {
				return err
			}
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(b); err != nil {
				return err
			}
			if u.GetUID() != "" {
				// An object with a UID can only be changed, not created.
				note(u.GroupVersionKind(), "", "patch")
				return merge(ctx, c, scheme, u)
			}
			note(u.GroupVersionKind(), "", "create", "patch")
			return replace(ctx, c, scheme, u)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			note(of(o), "/"+sub, "patch")
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}
}

// merge merges what is applied into an object, with lists by name. The fake client cannot apply all
// kinds.
func merge(ctx context.Context, c client.Client, scheme *runtime.Scheme, u *unstructured.Unstructured) error {
	if u.Object["spec"] == nil {
		return annotate(ctx, c, u)
	}
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return err
	}
	o, ok := made.(client.Object)
	if !ok {
		return fmt.Errorf("cannot apply %T", made)
	}
	o.SetNamespace(u.GetNamespace())
	o.SetName(u.GetName())
	b, err := json.Marshal(map[string]any{"spec": u.Object["spec"]})
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, b))
}

// annotate replaces the annotations of an object and changes nothing else: here, all annotations
// belong to the provider.
func annotate(ctx context.Context, c client.Client, u *unstructured.Unstructured) error {
	have := &unstructured.Unstructured{}
	have.SetGroupVersionKind(u.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(u), have); err != nil {
		return err
	}
	have.SetAnnotations(u.GetAnnotations())
	return c.Update(ctx, have)
}

// replace replaces an object by what is applied: the fake client cannot apply all kinds.
func replace(ctx context.Context, c client.Client, scheme *runtime.Scheme, u *unstructured.Unstructured) error {
	made, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return err
	}
	o, ok := made.(client.Object)
	if !ok {
		return fmt.Errorf("cannot apply %T", made)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return err
	}
	have, _ := o.DeepCopyObject().(client.Object)
	switch err := c.Get(ctx, client.ObjectKeyFromObject(o), have); {
	case kerrors.IsNotFound(err):
		return c.Create(ctx, o)
	case err != nil:
		return err
	}
	o.SetResourceVersion(have.GetResourceVersion())
	return c.Update(ctx, o)
}

// verbs returns the recorded verbs by group/resource.
func (w *world) verbs() map[string][]string {
	out := map[string][]string{}
	for k, v := range w.asked {
		out[k] = slices.Sorted(maps.Keys(v))
	}
	return out
}

// reconcile reconciles an object once, as crossplane-runtime does but without its bookkeeping: it
// observes, and then creates, updates or deletes. The observation shows whether the external
// resource still exists.
func (w *world) reconcile(t testing.TB, mg resource.Managed) (managed.ExternalObservation, error) {
	t.Helper()
	ctx := t.Context()
	if err := w.Get(ctx, client.ObjectKeyFromObject(mg), mg); err != nil {
		t.Fatal(err)
	}
	k := kube.Kube{Client: w.provider, Reader: w.reader}
	getenv := func(string) string { return "" }
	var c managed.ExternalConnector
	switch mg.(type) {
	case *backupv1.Backup:
		c = backup.NewConnector(k, images.Set{Registry: images.DefaultRegistry}, getenv, nil, event.NewNopRecorder(), telemetry.New(prometheus.NewRegistry()).Backups)
	case *configv1.AppConfig:
		c = w.appconfigs
	default:
		c = restore.NewConnector(k, images.Set{Registry: images.DefaultRegistry}, getenv, nil, event.NewNopRecorder())
	}
	e, err := c.Connect(ctx, mg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := e.Observe(ctx, mg)
	if err != nil {
		t.Fatal(err)
	}
	status := mg.DeepCopyObject().(client.Object)
	if _, ok := mg.(*configv1.AppConfig); ok {
		// What could not be done is in its status.
		status = mg
	}
	switch {
	case mg.GetDeletionTimestamp() != nil && o.ResourceExists:
		_, err = e.Delete(ctx, mg)
	case mg.GetDeletionTimestamp() != nil:
	case !o.ResourceExists:
		_, err = e.Create(ctx, mg)
	case !o.ResourceUpToDate:
		_, err = e.Update(ctx, mg)
	}
	if e := w.Status().Update(ctx, status); e != nil {
		t.Fatal(e)
	}
	return o, err
}

// finish completes a Job with a report.
func (w *world) finish(t testing.TB, job, report string) {
	t.Helper()
	ctx := t.Context()
	j := &batchv1.Job{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: "shop", Name: job}, j); err != nil {
		t.Fatal(err)
	}
	j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	if err := w.Status().Update(ctx, j); err != nil {
		t.Fatal(err)
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: job + "-x", Labels: j.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job, UID: j.UID, Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: "backup", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: report}}}}},
	}
	if err := w.Create(ctx, p); err != nil {
		t.Fatal(err)
	}
}

// jobs returns the names of all Jobs.
func (w *world) jobs(t testing.TB) []string {
	t.Helper()
	l := &batchv1.JobList{}
	if err := w.List(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, j := range l.Items {
		out = append(out, j.Name)
	}
	slices.Sort(out)
	return out
}

func secret(namespace, name string, values map[string]string) *corev1.Secret {
	data := map[string][]byte{}
	for k, v := range values {
		data[k] = []byte(v)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// shop returns a namespace with the Secret of a database, and a store that all namespaces use.
func shop() []client.Object {
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storeplane-escrow"}},
		secret("shop", "db", map[string]string{"uri": "postgresql://u:p@h/d"}),
		secret("crossplane-system", "store", map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "note": "ours"}),
		&storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: storeplanev1.ProviderConfigSpec{
			Endpoint: "https://s3.example.com", Region: "eu", Bucket: "b",
			Credentials: storeplanev1.Credentials{Source: storeplanev1.CredentialsSecret, SecretRef: &xpv2.SecretReference{Namespace: "crossplane-system", Name: "store"}},
		}},
	}
}

func aBackup() *backupv1.Backup {
	b := &backupv1.Backup{
		TypeMeta:   metav1.TypeMeta{APIVersion: backupv1.GroupVersion.String(), Kind: backupv1.BackupKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "backup", CreationTimestamp: metav1.Now()},
	}
	b.Spec.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: storeplanev1.ClusterProviderConfigKind, Name: "default"}
	b.Spec.ForProvider = backupv1.BackupParameters{
		Source:      backupv1.Database{Type: backupv1.PostgreSQL, Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "db", Key: "uri"}}},
		Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "b"},
		Schedule:    "0 2 * * *", TimeZone: "Etc/UTC", Method: backupv1.Logical,
	}
	return b
}

func aRestore() *backupv1.Restore {
	r := &backupv1.Restore{
		TypeMeta:   metav1.TypeMeta{APIVersion: backupv1.GroupVersion.String(), Kind: backupv1.RestoreKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "back", UID: "restore", CreationTimestamp: metav1.Now()},
	}
	r.Spec.ForProvider = backupv1.RestoreParameters{
		Source: backupv1.RestoreSource{BackupRef: &backupv1.LocalReference{Name: "orders"}},
		Target: backupv1.Database{Type: backupv1.PostgreSQL, Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "db", Key: "uri"}}},
	}
	return r
}
