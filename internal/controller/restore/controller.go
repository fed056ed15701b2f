package restore

import (
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// Setup adds the controller of Restores to a manager.
func Setup(mgr ctrl.Manager, o controller.Options, own images.Set, getenv func(string) string, t *telemetry.Telemetry) error {
	name := managed.ControllerName(backupv1.RestoreGroupVersionKind.GroupKind().String())
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(name)) //nolint:staticcheck // crossplane-runtime takes no other recorder.
	witness := workload.NewWitness(time.Now)
	c := NewConnector(kube.Kube{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}, own, getenv, witness, recorder)
	r := kube.Reconciler(mgr, o, name, backupv1.RestoreGroupVersionKind, t.Count(backupv1.RestoreKind, c), recorder, poll, managed.WithCreationGracePeriod(kube.Lag))
	news := witness.Watch(kube.Named(backupv1.RestoreLabel))
	if err := kube.Warm(mgr.GetCache(), &backupv1.Restore{}, &batchv1.Job{}, &batchv1.CronJob{}, &corev1.Pod{}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(&backupv1.Restore{}, builder.WithPredicates(resource.DesiredStateChanged())).
		Watches(&batchv1.Job{}, news).
		Watches(&corev1.Pod{}, news).
		Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
}

// impatient is the longest poll interval of a Restore that has not ended: what it waits for may be
// a Secret, which is not watched.
const impatient = 15 * time.Second

// ended is the shortest poll interval of a Restore that has ended, since it waits for nothing.
const ended = time.Hour

// poll returns the poll interval of a Restore, with jitter.
func poll(mg resource.Managed, interval time.Duration) time.Duration {
	if r, ok := mg.(*backupv1.Restore); ok {
		if r.Status.AtProvider.CompletionTime == nil {
			interval = min(interval, impatient)
		} else {
			interval = max(interval, ended)
		}
	}
	return telemetry.Jitter(interval)
}
