package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/storeplane/storeplane/internal/controller/claims"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/settings"
	"github.com/storeplane/storeplane/internal/waves"
)

// Owner is the field manager of the annotations that are applied here.
const Owner = client.FieldOwner("storeplane-waves")

// Kinds returns the kinds that must be served before the controller can start.
func Kinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{waves.SettingsKind}, claims.Kinds...)
}

// refusedFor is how long a claim is left out after the API server has forbidden to annotate it.
const refusedFor = 10 * time.Minute

// all is the only request, since all claims are reconciled together.
var all = reconcile.Request{NamespacedName: types.NamespacedName{Name: "all"}}

// Setup adds the controller to a manager. It watches claims and settings in the cache of a cluster
// of its own: see newAside in package internal/controller.
func Setup(mgr ctrl.Manager, from cluster.Cluster, o controller.Options, own images.Set, t *telemetry.Upgrades) error {
	const name = "upgrade"
	r := NewReconciler(from.GetClient(), own, t, o.Logger.WithValues("controller", name))
	co := o.ForControllerRuntime()
	co.CacheSyncTimeout = kube.SyncTimeout
	co.MaxConcurrentReconciles = 1
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{all} })
	b := ctrl.NewControllerManagedBy(mgr).Named(name).WithOptions(co)
	for _, kind := range Kinds() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		p := upgradeChanged()
		if kind == waves.SettingsKind {
			p = predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == waves.SettingsName })
		}
		if err := kube.Warm(from.GetCache(), u); err != nil {
			return err
		}
		b = b.WatchesRawSource(source.Kind[client.Object](from.GetCache(), u, toAll, p))
	}
	return b.Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
}

// upgradeChanged passes the updates that may change the progress of an upgrade.
func upgradeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok1 := e.ObjectOld.(*unstructured.Unstructured)
		now, ok2 := e.ObjectNew.(*unstructured.Unstructured)
		return !ok1 || !ok2 || !cmp.Equal(waves.Read(before), waves.Read(now))
	}}
}

// Reconciler reconciles all claims at once.
type Reconciler struct {
	client  client.Client
	images  images.Set
	metrics *telemetry.Upgrades
	log     logging.Logger

	// refused are the claims that could not be annotated, in namespaces of the system for example,
	// with the time of the attempt: another one soon after is expected to fail too.
	refused map[types.UID]time.Time

	// Now returns the time.
	Now func() time.Time
}

// NewReconciler returns a Reconciler of upgrades to the release that has these images.
func NewReconciler(c client.Client, own images.Set, t *telemetry.Upgrades, log logging.Logger) *Reconciler {
	return &Reconciler{client: c, images: own, metrics: t, log: log, refused: map[types.UID]time.Time{}, Now: time.Now}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	list, release, err := r.settings(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(list) == 0 {
		r.metrics.Observe(waves.Progress{})
		return reconcile.Result{}, nil
	}
	found, err := r.claims(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	labelsOf, err := r.labels(ctx, list)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.Now()
	p := waves.Decide(list, release, found, labelsOf, now)
	r.metrics.Observe(p)
	var errs []error
	for _, m := range p.Marks {
		errs = append(errs, r.mark(ctx, m, release))
	}
	result := reconcile.Result{}
	if !p.Next.IsZero() {
		result.RequeueAfter = max(time.Second, p.Next.Sub(now))
	}
	return result, errors.Join(errs...)
}

// settings returns the waves of the installation's settings, and the release that the function
// composes with these settings. There are none without an EnvironmentConfig or without waves.
func (r *Reconciler) settings(ctx context.Context) ([]waves.Wave, string, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(waves.SettingsKind)
	switch err := r.client.Get(ctx, client.ObjectKey{Name: waves.SettingsName}, u); {
	case kerrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("cannot get EnvironmentConfig %s: %w", waves.SettingsName, err)
	}
	list, err := waves.Of(u)
	if err != nil || len(list) == 0 {
		return nil, "", err
	}
	release, err := settings.ReleaseOf(u, r.images)
	return list, release, err
}

// claims returns all claims of the cluster.
func (r *Reconciler) claims(ctx context.Context) ([]waves.Claim, error) {
	var out []waves.Claim
	for _, kind := range claims.Kinds {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := r.client.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot list claims of kind %s: %w", kind.Kind, err)
		}
		for i := range l.Items {
			c := waves.Read(&l.Items[i])
			if at, ok := r.refused[c.UID]; ok {
				c.IsAside = c.IsAside || r.Now().Sub(at) < refusedFor
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// labels returns a function from the name of a namespace to its labels. They are only read if a
// wave depends on them.
func (r *Reconciler) labels(ctx context.Context, list []waves.Wave) (func(string) map[string]string, error) {
	of := map[string]map[string]string{}
	for _, w := range list {
		if w.Namespaces == nil {
			continue
		}
		l := &metav1.PartialObjectMetadataList{}
		l.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
		if err := r.client.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("cannot list namespaces: %w", err)
		}
		for i := range l.Items {
			of[l.Items[i].Name] = l.Items[i].Labels
		}
		break
	}
	return func(namespace string) map[string]string { return of[namespace] }, nil
}

// mark writes the annotations of a wave to a claim, or removes them, as long as its UID is the
// same.
func (r *Reconciler) mark(ctx context.Context, m waves.Marked, release string) error {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(m.APIVersion)
	u.SetKind(m.Kind)
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetUID(m.UID)
	if m.To != "" {
		u.SetAnnotations(map[string]string{waves.Annotation: release, waves.MarkAnnotation: string(m.To), waves.TimeAnnotation: r.Now().UTC().Format(time.RFC3339)})
	}
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), Owner, client.ForceOwnership)
	switch {
	case kerrors.IsNotFound(err), kerrors.IsConflict(err):
		return nil // The claim was deleted or replaced meanwhile.
	case kerrors.IsForbidden(err):
		r.refused[m.UID] = r.Now()
		r.log.Info("Cannot have a claim upgraded: it is left out", "kind", m.Kind, "namespace", m.Namespace, "name", m.Name, "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("cannot have %s %s in namespace %s upgraded: %w", m.Kind, m.Name, m.Namespace, err)
	}
	r.log.Info("Marked a claim in its wave", "kind", m.Kind, "namespace", m.Namespace, "name", m.Name, "release", release, "mark", string(m.To))
	return nil
}
