package appconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crevent "sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// rate is how many reconciliations may start in a second. One that has nothing to do needs few
// requests, and hundreds of workloads may change at a time.
const rate = 100

// workers is how many AppConfigs are reconciled at a time, at least.
const workers = 10

// Setup adds the controller of AppConfigs to a manager.
func Setup(mgr ctrl.Manager, o controller.Options, budget int, t *telemetry.Telemetry) error {
	name := managed.ControllerName(configv1.AppConfigGroupVersionKind.GroupKind().String())
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(name)) //nolint:staticcheck // crossplane-runtime takes no other recorder.
	clients, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("cannot make a client that reads logs: %w", err)
	}
	secrets, bundles := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")), kube.Metadata(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err = kube.Warm(mgr.GetCache(), &configv1.AppConfig{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &batchv1.CronJob{}, secrets, bundles)
	if err != nil {
		return err
	}
	if err := index(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c := NewConnector(kube.Kube{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}, NewLogs(clients), budget, recorder, t.AppConfigs)
	r := kube.Reconciler(mgr, o, name, configv1.AppConfigGroupVersionKind, t.Count(configv1.AppConfigKind, c), recorder, c.poll)
	options := o.ForControllerRuntime()
	options.MaxConcurrentReconciles = max(options.MaxConcurrentReconciles, workers)
	related := &related{client: mgr.GetClient()}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(options).
		For(&configv1.AppConfig{}, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&appsv1.Deployment{}, related.later(related.toWorkload)).
		Watches(&appsv1.StatefulSet{}, related.later(related.toWorkload)).
		Watches(&appsv1.DaemonSet{}, related.later(related.toWorkload)).
		Watches(&batchv1.CronJob{}, related.later(related.toWorkload)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(related.toSecret)).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(toOwner)).
		Complete(ratelimiter.NewReconciler(name, forget(mgr.GetClient(), c, r), ratelimiter.NewGlobal(rate)))
}

// calm is by what factor the poll interval of an AppConfig that is ready is longer: all that it
// depends on is watched.
const calm = 10

// poll returns the poll interval, with jitter, so that not all AppConfigs are polled at the same
// time.
func (c *Connector) poll(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		interval *= calm
	}
	interval = telemetry.Jitter(interval)
	if again := c.Again(mg); again > 0 {
		return min(interval, again)
	}
	return interval
}

// forget drops what is remembered of AppConfigs that were deleted, and passes other requests to
// inner.
func forget(c client.Client, known *Connector, inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		if err := c.Get(ctx, req.NamespacedName, &configv1.AppConfig{}, client.UnsafeDisableDeepCopy); kerrors.IsNotFound(err) {
			known.Forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return inner.Reconcile(ctx, req)
	})
}

// Indices of AppConfigs by what they refer to.
const (
	bySecret   = "config.example.com/secret" //nolint:gosec // The name is not a secret.
	byWorkload = "config.example.com/workload"
)

// index indexes AppConfigs, so that a change of a workload or a Secret enqueues few of them.
func index(i client.FieldIndexer) error {
	for field, of := range map[string]func(*configv1.AppConfig) []string{bySecret: secretsOf, byWorkload: workloadsOf} {
		err := i.IndexField(context.Background(), &configv1.AppConfig{}, field, func(o client.Object) []string {
			if a, ok := o.(*configv1.AppConfig); ok {
				return of(a)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot index AppConfigs by %s: %w", field, err)
		}
	}
	return nil
}

func secretsOf(a *configv1.AppConfig) []string {
	var out []string
	for _, r := range a.Spec.ForProvider.SecretRefs {
		out = append(out, r.Name)
	}
	return out
}

// workloadsOf returns the targets of an AppConfig for the index: by kind and name, or by one label
// that all of them have.
func workloadsOf(a *configv1.AppConfig) []string {
	p := &a.Spec.ForProvider
	if len(p.Targets) == 0 {
		labels := appconfig.Labels(p)
		for _, k := range slices.Sorted(maps.Keys(labels)) {
			return []string{labelIndex(k, labels[k])}
		}
		return nil
	}
	var out []string
	for _, t := range p.Targets {
		out = append(out, Key{Kind: t.Kind, Name: t.Name}.String())
	}
	return out
}

func labelIndex(k, v string) string { return k + "=" + v }

// related finds the AppConfigs that a change of an object concerns.
type related struct{ client client.Client }

// toSecret returns the AppConfigs that take keys of a Secret, and the one that it belongs to.
func (r *related) toSecret(ctx context.Context, o client.Object) []reconcile.Request {
	return append(r.find(ctx, o.GetNamespace(), bySecret, o.GetName()), toOwner(ctx, o)...)
}

// toWorkload returns the AppConfigs that may have a workload as their target.
func (r *related) toWorkload(ctx context.Context, o client.Object) []reconcile.Request {
	out := r.find(ctx, o.GetNamespace(), byWorkload, Key{Kind: kindOf(o), Name: o.GetName()}.String())
	for k, v := range o.GetLabels() {
		out = append(out, r.find(ctx, o.GetNamespace(), byWorkload, labelIndex(k, v))...)
	}
	return out
}

func (r *related) find(ctx context.Context, namespace, field, value string) []reconcile.Request {
	l := &configv1.AppConfigList{}
	// The list comes from the cache, where only a mistake in this code causes an error.
	if err := r.client.List(ctx, l, client.InNamespace(namespace), client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	out := make([]reconcile.Request, 0, len(l.Items))
	for i := range l.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
	}
	return out
}

// toOwner returns the AppConfig that an object's label names.
var toOwner = kube.Named(configv1.AppConfigLabel)

// gathering is how long changes of workloads are collected: a rollout causes many at once.
const gathering = 200 * time.Millisecond

// later enqueues what find returns after the time gathering, so that changes of many workloads are
// handled in one reconciliation.
func (r *related) later(find handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request], objects ...client.Object) {
		seen := map[reconcile.Request]bool{}
		for _, o := range objects {
			for _, req := range find(ctx, o) {
				if !seen[req] {
					seen[req] = true
					q.AddAfter(req, gathering)
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e crevent.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.Object)
		},
		UpdateFunc: func(ctx context.Context, e crevent.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				add(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e crevent.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, q, e.Object)
		},
	}
}

// StripMetadata removes what is not read from objects of which only the metadata is cached, since
// there are many Secrets.
func StripMetadata(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		m.ManagedFields, m.Finalizers = nil, nil
		if m.Labels[configv1.AppConfigLabel] == "" {
			m.OwnerReferences = nil
		}
		for k := range m.Annotations {
			if k != secretAnnotation && k != configv1.HoldsAnnotation {
				delete(m.Annotations, k)
			}
		}
	}
	return o, nil
}

// StripWorkload removes from a workload what is large and not read: the managed fields, and what
// kubectl applied last.
func StripWorkload(o any) (any, error) {
	if m, ok := o.(client.Object); ok {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return o, nil
}
