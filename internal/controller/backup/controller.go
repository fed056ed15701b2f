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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// Setup adds the controller of Backups to a manager.
func Setup(mgr ctrl.Manager, o controller.Options, own images.Set, getenv func(string) string, t *telemetry.Telemetry) error {
	name := managed.ControllerName(backupv1.BackupGroupVersionKind.GroupKind().String())
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(name)) //nolint:staticcheck // crossplane-runtime takes no other recorder.
	witness := workload.NewWitness(time.Now)
	c := NewConnector(kube.Kube{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}, own, getenv, witness, recorder, t.Backups)
	r := kube.Reconciler(mgr, o, name, backupv1.BackupGroupVersionKind, t.Count(backupv1.BackupKind, c), recorder, poll, managed.WithCreationGracePeriod(kube.Lag))
	news := witness.Watch(kube.Named(backupv1.BackupLabel))
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&backupv1.Backup{}, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&batchv1.Job{}, news).
		Watches(&batchv1.CronJob{}, news).
		Watches(&corev1.Pod{}, news).
		Complete(ratelimiter.NewReconciler(name, forget(mgr.GetClient(), t, r), o.GlobalRateLimiter))
}

// impatient is the longest poll interval of a Backup that is not ready: what it waits for may be a
// Secret, which is not watched.
const impatient = 15 * time.Second

// poll returns the poll interval, with jitter, so that not all Backups are polled at the same time.
func poll(mg resource.Managed, interval time.Duration) time.Duration {
	if mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		interval = min(interval, impatient)
	}
	return telemetry.Jitter(interval)
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
