package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	xpgate "github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	controllers "github.com/storeplane/storeplane/internal/controller"
	"github.com/storeplane/storeplane/internal/controller/appconfig"
	"github.com/storeplane/storeplane/internal/controller/claims"
	"github.com/storeplane/storeplane/internal/controller/gate"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// leaseName is the name of the Lease by which replicas elect a leader.
const leaseName = "storeplane-provider"

// A leader that fails is replaced by another replica within 20 seconds. That replica polls the
// Lease every 1 to 2.2 retry periods, so it may be that late to observe the last renewal, and again
// to observe that the Lease has expired, which makes 11s + 2×2.2×1.25s = 16.5s at most. The rest is
// for starting the controllers. A leader that cannot renew the Lease stops three seconds before it
// expires, which is more than clocks drift apart in that time.
const (
	leaseDuration = 11 * time.Second
	renewDeadline = 8 * time.Second
	retryPeriod   = 1250 * time.Millisecond
)

// stopPatience is how long reconciliations in progress may take after a leader is stopped. Then it
// releases the Lease, before its pod's grace period of 30 seconds ends.
const stopPatience = 20 * time.Second

// appConfigRate is the least rate from which the limit of requests to the API server is derived,
// five times as many per second: one change of an AppConfig may cause hundreds of requests, and an
// edit of another one should not wait for them.
const appConfigRate = 40

func newManager(c *cli, cfg *rest.Config, l *lock) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, extv1.AddToScheme, backupv1.SchemeBuilder.AddToScheme, configv1.SchemeBuilder.AddToScheme, storeplanev1.SchemeBuilder.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot register kinds: %w", err)
		}
	}
	byObject, err := watched()
	if err != nil {
		return nil, err
	}
	o := ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{ByObject: byObject, DefaultTransform: claims.Strip},
		Metrics:                       server.Options{BindAddress: c.MetricsAddress},
		HealthProbeBindAddress:        c.HealthAddress,
		LeaderElection:                c.LeaderElection,
		LeaderElectionID:              leaseName,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
		GracefulShutdownTimeout:       new(stopPatience),
	}
	if c.LeaderElection {
		o.LeaderElectionResourceLockInterface = l
	}
	mgr, err := ctrl.NewManager(ratelimiter.LimitRESTConfig(cfg, max(c.MaxRate, appConfigRate)), o)
	if err != nil {
		return nil, fmt.Errorf("cannot make the manager: %w", err)
	}
	return mgr, nil
}

// watched returns what the cache holds of the kinds that are not cached whole: the Jobs and
// pods of Backups and Restores, and the metadata of ConfigMaps that AppConfigs created; the
// workloads that AppConfigs may change; the metadata of Secrets; and
// CustomResourceDefinitions without their schemas.
func watched() (map[client.Object]cache.ByObject, error) {
	having := func(label string, transform func(any) (any, error)) (cache.ByObject, error) {
		r, err := labels.NewRequirement(label, selection.Exists, nil)
		if err != nil {
			return cache.ByObject{}, fmt.Errorf("cannot select by label %s: %w", label, err)
		}
		return cache.ByObject{Label: labels.NewSelector().Add(*r), Transform: transform}, nil
	}
	working, err := having(backupv1.ActionLabel, nil)
	if err != nil {
		return nil, err
	}
	bundles, err := having(configv1.AppConfigLabel, appconfig.StripMetadata)
	if err != nil {
		return nil, err
	}
	workloads := cache.ByObject{Transform: appconfig.StripWorkload}
	return map[client.Object]cache.ByObject{
		&batchv1.Job{}:        working,
		&corev1.Pod{}:         working,
		&appsv1.Deployment{}:  workloads,
		&appsv1.StatefulSet{}: workloads,
		&appsv1.DaemonSet{}:   workloads,
		&batchv1.CronJob{}:    workloads,
		kube.Metadata(corev1.SchemeGroupVersion.WithKind("ConfigMap")): bundles,
		kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret")):    {Transform: appconfig.StripMetadata},
		&extv1.CustomResourceDefinition{}:                              {Transform: customresourcesgate.TransformStripCRDSchema},
	}, nil
}

// stateInterval is how often managed resources are counted by their state.
const stateInterval = 15 * time.Second

// setup sets up the controllers, metrics and probes of a manager.
func setup(ctx context.Context, mgr ctrl.Manager, l *lock, c *cli, log logging.Logger, failed chan<- error) error {
	reconciled, states := managed.NewMRMetricRecorder(), statemetrics.NewMRStateMetrics()
	metrics.Registry.MustRegister(reconciled, states)

	own, err := c.Set()
	if err != nil {
		return err
	}
	all := &controllers.Controllers{
		Images:        own,
		RolloutBudget: c.RolloutBudget,
		MaxRate:       c.MaxRate,
		Getenv:        os.Getenv,
		Telemetry:     telemetry.New(metrics.Registry),
		Fail: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	}
	if err := all.Setup(ctx, mgr, controller.Options{
		Logger:                  log,
		PollInterval:            c.PollInterval,
		MaxConcurrentReconciles: c.MaxRate,
		Features:                &feature.Flags{},
		Gate:                    new(xpgate.Gate[schema.GroupVersionKind]),
		MetricOptions:           &controller.MetricOptions{PollStateMetricInterval: stateInterval, MRMetrics: reconciled, MRStateMetrics: states},
	}); err != nil {
		return fmt.Errorf("cannot set up the controllers: %w", err)
	}
	ready := &controllers.Readiness{
		Synced:  mgr.GetCache().WaitForCacheSync,
		Served:  gate.In(mgr.GetRESTMapper()),
		Started: all.Started,
	}
	go func() {
		if ready.Await(ctx, unreadyFor); ctx.Err() == nil {
			close(l.ready)
		}
	}()
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ready", logged(ready.Check, log)))
}

// logged returns a check that logs why a replica is not ready, once for each reason: the response to
// a probe does not contain it.
func logged(check healthz.Checker, log logging.Logger) healthz.Checker {
	var mu sync.Mutex
	last := "nothing was checked yet"
	return func(req *http.Request) error {
		err := check(req)
		now := ""
		if err != nil {
			now = err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		if now == last {
			return err
		}
		if last = now; err != nil {
			log.Info("Not ready", "reason", now)
			return err
		}
		log.Info("Ready")
		return nil
	}
}

// start runs the manager, and stops it if a controller cannot be started.
func start(ctx context.Context, mgr ctrl.Manager, failed <-chan error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("cannot run the manager: %w", err)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
