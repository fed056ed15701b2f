package kube

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// SyncTimeout is how long a controller of claims waits for those that cannot be read. By default a
// controller whose cache is not in sync after two minutes ends the whole provider, and with it the
// work on backups and configuration. With this time, a provider that is newer than its RBAC rules
// only does not pause or upgrade claims.
const SyncTimeout = 10 * 365 * 24 * time.Hour

// Reconciler returns a reconciler of the managed resources of a kind, with the settings that all of
// the provider's share. name is that of its controller.
func Reconciler(mgr ctrl.Manager, o controller.Options, name string, kind schema.GroupVersionKind, c managed.ExternalConnector, recorder event.Recorder, poll managed.PollIntervalHook, more ...managed.ReconcilerOption) *managed.Reconciler {
	return managed.NewReconciler(mgr, resource.ManagedKind(kind), append(more,
		managed.WithExternalConnector(c),
		managed.WithLogger(o.Logger.WithValues("controller", name)),
		managed.WithRecorder(recorder),
		managed.WithPollInterval(o.PollInterval),
		managed.WithPollIntervalHook(poll),
		managed.WithManagementPolicies(),
		managed.WithDeterministicExternalName(true),
		managed.WithMetricRecorder(o.MetricOptions.MRMetrics),
	)...)
}

// Named returns a function that maps an object to a request for the object, in the same namespace,
// that its label names.
func Named(label string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[label]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
	}
}
