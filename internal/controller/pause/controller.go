package pause

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
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

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
)

// Owner of the annotations that are applied here, and of nothing else: when the
// owner applies none, they go.
const Owner = client.FieldOwner("storeplane-pause")

// Family is a kind that claims compose, and those claims' kinds.
type Family struct {
	Child   schema.GroupVersionKind
	Parents []schema.GroupVersionKind
}

// Families of all that a claim is made of and that somebody reconciles.
func Families() []Family {
	shop := platformv1.GroupVersion.WithKind(platformv1.EcommercePlatformKind)
	database := appsv1.GroupVersion.WithKind(appsv1.DatabaseClusterKind)
	web := appsv1.GroupVersion.WithKind(appsv1.WebAppKind)
	return []Family{
		{Child: database, Parents: []schema.GroupVersionKind{shop}},
		{Child: web, Parents: []schema.GroupVersionKind{shop}},
		{Child: backupv1.BackupGroupVersionKind, Parents: []schema.GroupVersionKind{database}},
		{Child: configv1.AppConfigGroupVersionKind, Parents: []schema.GroupVersionKind{shop, web}},
	}
}

// Kinds of a family: all must be served before its controller can begin.
func (f Family) Kinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{f.Child}, f.Parents...)
}

// patience with claims that cannot be read. By default a controller that cannot
// read for two minutes ends the whole provider, and what it does for backups and
// configuration with it: one that is newer than its rights only does not pause.
const patience = 10 * 365 * 24 * time.Hour

// Setup adds the controller of one family to a manager. Of all kinds only the
// metadata is watched, by the cache of its own cluster: see
// internal/controller.Controllers.
func Setup(mgr ctrl.Manager, from cluster.Cluster, o controller.Options, f Family) error {
	name := "pause/" + strings.ToLower(f.Child.GroupKind().String())
	r := NewReconciler(from.GetClient(), f, o.Logger.WithValues("controller", name))
	co := o.ForControllerRuntime()
	co.CacheSyncTimeout = patience
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(co).
		WatchesRawSource(source.Kind[client.Object](from.GetCache(), metadataOf(f.Child), &handler.EnqueueRequestForObject{}, predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, ownerChanged())))
	for _, p := range f.Parents {
		b = b.WatchesRawSource(source.Kind[client.Object](from.GetCache(), metadataOf(p), handler.EnqueueRequestsFromMapFunc(r.children), pauseChanged()))
	}
	return b.Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
}

// ownerChanged passes on that an object is another claim's, or nobody's any more: what a
// claim leaves behind that is deleted alone, while it is paused, is nobody's before the
// claim is gone.
func ownerChanged() predicate.Predicate {
	owner := func(o client.Object) types.UID {
		if c := metav1.GetControllerOf(o); c != nil {
			return c.UID
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return owner(e.ObjectOld) != owner(e.ObjectNew) },
	}
}

// pauseChanged passes on that a claim was paused, goes on or went. That one came
// which is not paused is no news: each object that it composes is looked at when
// that comes, and for thousands of claims at the provider's start their objects
// would be listed for each.
func pauseChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return meta.IsPaused(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return meta.IsPaused(e.ObjectOld) != meta.IsPaused(e.ObjectNew) },
	}
}

// Reconciler looks at one object of a family at a time. That it begins with what
// is composed, and not with the claim, lets it resume also what a claim left
// behind that is gone: paused it could never be deleted.
type Reconciler struct {
	client client.Client
	family Family
	log    logging.Logger
}

// NewReconciler of a family.
func NewReconciler(c client.Client, f Family, log logging.Logger) *Reconciler {
	return &Reconciler{client: c, family: f, log: log}
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := metadataOf(r.family.Child)
	if err := r.client.Get(ctx, req.NamespacedName, o); err != nil {
		if kerrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("cannot get %s %s: %w", r.family.Child.Kind, req, err)
	}
	with, err := r.pausedClaim(ctx, o)
	if err != nil {
		return reconcile.Result{}, err
	}
	a := decide(o.GetAnnotations(), with)
	if a == leave {
		return reconcile.Result{}, nil
	}
	if err := r.apply(ctx, o, a.annotations(with)); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot %s %s %s: %w", a, r.family.Child.Kind, req, err)
	}
	r.log.Debug("Changed whether it is paused", "action", string(a), "object", req.String(), "with", with)
	return reconcile.Result{}, nil
}

// pausedClaim that composes an object, as "Kind name", or "" when it is not
// paused, gone, or none of ours.
func (r *Reconciler) pausedClaim(ctx context.Context, o client.Object) (string, error) {
	c := metav1.GetControllerOf(o)
	if c == nil {
		return "", nil
	}
	gvk := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)
	if !slices.Contains(r.family.Parents, gvk) {
		return "", nil
	}
	claim := metadataOf(gvk)
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: c.Name}, claim); err != nil {
		if kerrors.IsNotFound(err) {
			return "", nil
		}
		return "", fmt.Errorf("cannot get %s %s/%s: %w", c.Kind, o.GetNamespace(), c.Name, err)
	}
	if claim.GetUID() != c.UID || !meta.IsPaused(claim) {
		return "", nil
	}
	return c.Kind + " " + c.Name, nil
}

// apply annotations, and none of ours beside them, to an object as long as it is
// the same one.
func (r *Reconciler) apply(ctx context.Context, o client.Object, annotations map[string]string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.family.Child)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	u.SetUID(o.GetUID())
	u.SetAnnotations(annotations)
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), Owner, client.ForceOwnership)
	if kerrors.IsNotFound(err) || kerrors.IsConflict(err) {
		// It is gone, or another one by now, of which there is news.
		return nil
	}
	return err
}

// children of a claim.
func (r *Reconciler) children(ctx context.Context, claim client.Object) []reconcile.Request {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(r.family.Child.GroupVersion().WithKind(r.family.Child.Kind + "List"))
	// It is read from the cache, which has no errors but those of programmers.
	if err := r.client.List(ctx, l, client.InNamespace(claim.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		r.log.Info("Cannot list what a claim is made of", "error", err, "claim", client.ObjectKeyFromObject(claim).String())
		return nil
	}
	var out []reconcile.Request
	for i := range l.Items {
		if c := metav1.GetControllerOf(&l.Items[i]); c != nil && c.UID == claim.GetUID() {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])})
		}
	}
	return out
}

// metadataOf an object of a kind, empty.
func metadataOf(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	return o
}
