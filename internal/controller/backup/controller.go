package backup

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/instance"
)

// Setup adds the controller of Backups to a manager.
func Setup(mgr ctrl.Manager, o controller.Options, own images.Set, getenv func(string) string, t *telemetry.Telemetry) error {
	name := managed.ControllerName(backupv1.BackupGroupVersionKind.GroupKind().String())
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(name)) //nolint:staticcheck // crossplane-runtime takes no other recorder.
	witness := workload.NewWitness(time.Now)
	c := NewConnector(kube.Kube{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}, own, getenv, witness, recorder, t.Backups)
	r := kube.Reconciler(mgr, o, name, backupv1.BackupGroupVersionKind, t.Count(backupv1.BackupKind, c), recorder, poll(time.Now), managed.WithCreationGracePeriod(kube.Lag))
	news := witness.Watch(kube.Named(backupv1.BackupLabel))
	related := &related{client: mgr.GetClient()}
	configs := handler.EnqueueRequestsFromMapFunc(related.toConfig)
	secrets := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := kube.Warm(mgr.GetCache(), &backupv1.Backup{}, &batchv1.Job{}, &batchv1.CronJob{}, &corev1.Pod{}, secrets, &storeplanev1.ProviderConfig{}, &storeplanev1.ClusterProviderConfig{})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&backupv1.Backup{}, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&batchv1.Job{}, news).
		Watches(&batchv1.CronJob{}, news).
		Watches(&corev1.Pod{}, news).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(related.toSecret)).
		Watches(&storeplanev1.ProviderConfig{}, configs).
		Watches(&storeplanev1.ClusterProviderConfig{}, configs).
		Complete(ratelimiter.NewReconciler(name, forget(mgr.GetClient(), t, r), o.GlobalRateLimiter))
}

// impatient is the longest poll interval of a Backup that is not ready: what it waits for may be an
// object that is not watched.
const impatient = 15 * time.Second

// calm is by what factor the poll interval of a Backup at rest is longer: the Secrets and
// configurations that it refers to are watched, and its Jobs.
const calm = 10

// silent is after what time a DatabaseCluster counts as one that archives nothing, for example since it
// is hibernated.
const silent = time.Hour

// poll returns a function that returns the poll interval, with jitter, so that not all Backups are
// polled at the same time.
func poll(now func() time.Time) managed.PollIntervalHook {
	return func(mg resource.Managed, interval time.Duration) time.Duration {
		b, ok := mg.(*backupv1.Backup)
		switch {
		case mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue:
			interval = min(interval, impatient)
		case ok && isAtRest(b):
			interval = restsFor(b, interval, now())
		}
		return telemetry.Jitter(interval)
	}
}

// isAtRest reports whether nothing about a Backup that is ready depends on the time but what is due
// by its schedules: it has no Job, and nothing has failed or is still to be verified.
func isAtRest(b *backupv1.Backup) bool {
	o := &b.Status.AtProvider
	verified := b.GetCondition(backupv1.TypeVerified)
	return o.Job == "" && o.LastFailure == nil &&
		b.GetCondition(xpv2.TypeSynced).Status == corev1.ConditionTrue &&
		b.GetCondition(backupv1.TypeEscrowed).Status != corev1.ConditionFalse &&
		(verified.Status == corev1.ConditionTrue || verified.Reason == backupv1.ReasonDisabled)
}

// restsFor returns the poll interval of a Backup at rest. It ends interval after the next scheduled
// backup, which is overdue then if it has not begun, and for backups beside which a DatabaseCluster archives its log
// interval after the time up to which the archive can be restored should have advanced.
func restsFor(b *backupv1.Backup, interval time.Duration, now time.Time) time.Duration {
	long := calm * interval
	o := &b.Status.AtProvider
	if next := o.NextScheduleTime; next != nil {
		long = min(long, max(next.Sub(now), 0)+interval)
	}
	switch p := &b.Spec.ForProvider; {
	case p.Method != backupv1.Physical:
		return long
	case o.LastRecoverableTime == nil && (byCluster(p) || isOwned(b) && o.LastSuccessfulTime != nil):
		return interval
	case o.LastRecoverableTime == nil:
		return long
	}
	if due := instance.ArchiveStep + interval - now.Sub(o.LastRecoverableTime.Time); due > -silent {
		long = min(long, max(due, interval))
	}
	return long
}

// isOwned reports whether a Backup is a part of a DatabaseCluster.
func isOwned(b *backupv1.Backup) bool {
	owner := metav1.GetControllerOf(b)
	return owner != nil && owner.Kind == appsv1.DatabaseClusterKind
}

// forget removes the metrics of Backups that were deleted, and passes other requests to inner.
func forget(c client.Client, t *telemetry.Telemetry, inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		if err := c.Get(ctx, req.NamespacedName, &backupv1.Backup{}); kerrors.IsNotFound(err) {
			t.Backups.Forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return inner.Reconcile(ctx, req)
	})
}
