package pause

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	"github.com/storeplane/storeplane/internal/controller/kube"
)

// Owner is the field manager of the annotations that are applied here, and of nothing else: an
// apply without them removes them.
const Owner = client.FieldOwner("storeplane-pause")

// Family is a kind that claims compose, and the kinds of those claims.
type Family struct {
	Child   schema.GroupVersionKind
	Parents []schema.GroupVersionKind
}

// Families returns one Family for each kind that claims compose and that has a controller which
// honours the pause.
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

// Kinds returns the kinds of a family. All must be served before its controller can start.
func (f Family) Kinds() []schema.GroupVersionKind {
	return append([]schema.GroupVersionKind{f.Child}, f.Parents...)
}

// Setup adds the controller of one family to a manager. It watches only the metadata of all kinds,
// in the cache of a cluster of its own: see newAside in package internal/controller.
func Setup(mgr ctrl.Manager, from cluster.Cluster, o controller.Options, f Family) error {
	name := "pause/" + strings.ToLower(f.Child.GroupKind().String())
	r := NewReconciler(from.GetClient(), f, o.Logger.WithValues("controller", name))
	co := o.ForControllerRuntime()
	co.CacheSyncTimeout = kube.SyncTimeout
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(co).
		WatchesRawSource(source.Kind[client.Object](from.GetCache(), kube.Metadata(f.Child), &handler.EnqueueRequestForObject{}, predicate.Or[client.Object](predicate.AnnotationChangedPredicate{}, ownerChanged())))
	if err := kube.Warm(from.GetCache(), kube.Metadata(f.Child)); err != nil {
		return err
	}
	for _, p := range f.Parents {
		if err := kube.Warm(from.GetCache(), kube.Metadata(p)); err != nil {
			return err
		}
		b = b.WatchesRawSource(source.Kind[client.Object](from.GetCache(), kube.Metadata(p), handler.EnqueueRequestsFromMapFunc(r.children), pauseChanged()))
	}
	return b.Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
}

// ownerChanged passes the updates by which an object gets another claim as its owner, or none: when
// a paused claim is deleted without the objects that it composes, they lose their owner before the
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

// pauseChanged passes the events by which a claim is paused, resumed or deleted. It drops the
// creation of a claim that is not paused: each object that the claim composes is reconciled by an
// event of its own, and at the provider's start objects would be listed for each of thousands of
// claims.
func pauseChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return meta.IsPaused(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return meta.IsPaused(e.ObjectOld) != meta.IsPaused(e.ObjectNew) },
	}
}

// Reconciler reconciles one object of a family at a time. It starts with the composed object and
// not with the claim, so that it also resumes an object that a deleted claim left behind: while
// paused, that object could never be deleted.
type Reconciler struct {
	client client.Client
	family Family
	log    logging.Logger
}

// NewReconciler returns the Reconciler of a family.
func NewReconciler(c client.Client, f Family, log logging.Logger) *Reconciler {
	return &Reconciler{client: c, family: f, log: log}
}

// Reconcile pauses or resumes an object as its claim is. It implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	o := kube.Metadata(r.family.Child)
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

// pausedClaim returns the claim that composes an object, as "Kind name". It returns "" if the claim
// is not paused, does not exist, or is not one of the family.
func (r *Reconciler) pausedClaim(ctx context.Context, o client.Object) (string, error) {
	c := metav1.GetControllerOf(o)
	if c == nil {
		return "", nil
	}
	gvk := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)
	if !slices.Contains(r.family.Parents, gvk) {
		return "", nil
	}
	claim := kube.Metadata(gvk)
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

// apply applies annotations to an object as long as its UID is the same, and removes all others of
// this field manager.
func (r *Reconciler) apply(ctx context.Context, o client.Object, annotations map[string]string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.family.Child)
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	u.SetUID(o.GetUID())
	u.SetAnnotations(annotations)
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), Owner, client.ForceOwnership)
	if kerrors.IsNotFound(err) || kerrors.IsConflict(err) {
		// The object was deleted or replaced meanwhile, which causes an event of its own.
		return nil
	}
	return err
}

// children returns a request for each object of the family that a claim composes.
func (r *Reconciler) children(ctx context.Context, claim client.Object) []reconcile.Request {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(r.family.Child.GroupVersion().WithKind(r.family.Child.Kind + "List"))
	// The list comes from the cache, where only a mistake in this code causes an error.
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
