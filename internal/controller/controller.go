// Package controller sets up the provider's controllers, each once the API server serves the kinds
// that it needs.
package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/controller/appconfig"
	"github.com/storeplane/storeplane/internal/controller/backup"
	"github.com/storeplane/storeplane/internal/controller/claims"
	"github.com/storeplane/storeplane/internal/controller/config"
	"github.com/storeplane/storeplane/internal/controller/gate"
	"github.com/storeplane/storeplane/internal/controller/pause"
	"github.com/storeplane/storeplane/internal/controller/restore"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/upgrade"
	"github.com/storeplane/storeplane/internal/images"
)

// ConfigKinds are the kinds that are always served once the package is installed, and ManagedKinds
// those that an installation may leave out (https://docs.crossplane.io/latest/managed-resources).
var (
	ConfigKinds = []schema.GroupVersionKind{
		storeplanev1.GroupVersion.WithKind(storeplanev1.ProviderConfigKind),
		storeplanev1.GroupVersion.WithKind(storeplanev1.ClusterProviderConfigKind),
		storeplanev1.GroupVersion.WithKind(storeplanev1.ProviderConfigUsageKind),
	}
	ManagedKinds = []schema.GroupVersionKind{
		backupv1.BackupGroupVersionKind,
		backupv1.RestoreGroupVersionKind,
		configv1.AppConfigGroupVersionKind,
	}
)

// Controllers are the controllers of the provider and their settings.
type Controllers struct {
	// Images are Storeplane's own images, which Jobs run and claims are composed with.
	Images images.Set

	// RolloutBudget is how many workloads of a namespace AppConfigs roll out at a time.
	RolloutBudget int

	// MaxRate is how many resources of a kind are reconciled in a second. AppConfigs have a limit
	// of their own.
	MaxRate int

	// Getenv reads the provider's own environment.
	Getenv func(string) string

	Telemetry *telemetry.Telemetry

	// Fail is called with the error that kept a controller from being started.
	Fail func(error)

	mu      sync.Mutex
	started map[schema.GroupVersionKind]bool
}

// Setup sets up the controllers, on each replica. Each has its kinds read once they are served, and starts once the replica
// leads. None starts after ctx is done.
func (c *Controllers) Setup(ctx context.Context, mgr ctrl.Manager, o controller.Options) error {
	o.Gate = gate.New(ctx, o.Gate, gate.In(mgr.GetRESTMapper()), o.Logger)
	c.started = map[schema.GroupVersionKind]bool{}
	needs := func(of ...schema.GroupVersionKind) []schema.GroupVersionKind { return append(of, ConfigKinds...) }

	for _, each := range []struct {
		kind  schema.GroupVersionKind
		setup func() error
	}{
		{ConfigKinds[0], func() error {
			return config.Setup(mgr, c.limited(o), storeplanev1.ProviderConfigKind, &storeplanev1.ProviderConfig{})
		}},
		{ConfigKinds[1], func() error {
			return config.Setup(mgr, c.limited(o), storeplanev1.ClusterProviderConfigKind, &storeplanev1.ClusterProviderConfig{})
		}},
		{backupv1.BackupGroupVersionKind, func() error {
			if err := count(mgr, o, &backupv1.BackupList{}); err != nil {
				return err
			}
			return backup.Setup(mgr, c.limited(o), c.Images, c.Getenv, c.Telemetry)
		}},
		{backupv1.RestoreGroupVersionKind, func() error {
			if err := count(mgr, o, &backupv1.RestoreList{}); err != nil {
				return err
			}
			return restore.Setup(mgr, c.limited(o), c.Images, c.Getenv, c.Telemetry)
		}},
		{configv1.AppConfigGroupVersionKind, func() error {
			if err := count(mgr, o, &configv1.AppConfigList{}); err != nil {
				return err
			}
			return appconfig.Setup(mgr, o, c.RolloutBudget, c.Telemetry)
		}},
	} {
		o.Gate.Register(func() {
			if err := each.setup(); err != nil {
				c.Fail(fmt.Errorf("cannot start the controller of %s: %w", each.kind.Kind, err))
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.started[each.kind] = true
		}, needs(each.kind)...)
	}
	aside, err := newAside(mgr)
	if err != nil {
		return err
	}
	for _, f := range pause.Families() {
		o.Gate.Register(func() {
			if err := pause.Setup(mgr, aside, c.limited(o), f); err != nil {
				c.Fail(fmt.Errorf("cannot start the controller that pauses %s: %w", f.Child.Kind, err))
			}
		}, f.Kinds()...)
	}
	o.Gate.Register(func() {
		if err := upgrade.Setup(mgr, aside, c.limited(o), c.Images, c.Telemetry.Upgrades); err != nil {
			c.Fail(fmt.Errorf("cannot start the controller of upgrades: %w", err))
		}
	}, upgrade.Kinds()...)
	for _, kind := range claims.Kinds {
		o.Gate.Register(func() {
			// Only one of several replicas exports metrics of claims.
			select {
			case <-ctx.Done():
				return
			case <-mgr.Elected():
			}
			if err := claims.Watch(ctx, aside.GetCache(), kind, c.Telemetry.Claims); err != nil {
				c.Fail(err)
			}
		}, kind)
	}
	return customresourcesgate.Setup(onAll{mgr}, o)
}

// onAll is a manager whose controllers run on each replica. The gate is one: a replica that waits to become the leader sets up
// its controllers, whose caches are filled by then.
type onAll struct{ ctrl.Manager }

// GetControllerOptions implements ctrl.Manager.
func (m onAll) GetControllerOptions() ctrlconfig.Controller {
	o := m.Manager.GetControllerOptions()
	o.NeedLeaderElection = new(false)
	return o
}

// limited returns the options of one controller, with a rate limit of its own: with one limit for
// all, a Restore would wait on a new leader until thousands of claims are checked for a pause.
func (c *Controllers) limited(o controller.Options) controller.Options {
	o.GlobalRateLimiter = ratelimiter.NewGlobal(c.MaxRate)
	return o
}

// newAside returns a cluster with a separate cache for claims, which the manager starts. A
// controller starts once all of its cache is in sync, not only what it watches itself: with claims
// in the cache of Backups and AppConfigs, none of those would be reconciled while claims cannot be
// read.
func newAside(mgr ctrl.Manager) (cluster.Cluster, error) {
	aside, err := cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.Cache.DefaultTransform = claims.Strip
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the cache of claims: %w", err)
	}
	if err := mgr.Add(aside); err != nil {
		return nil, fmt.Errorf("cannot start the cache of claims: %w", err)
	}
	return aside, nil
}

// Started reports whether the controller of a kind was started.
func (c *Controllers) Started(kind schema.GroupVersionKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started[kind]
}

// count adds a recorder to the manager that counts the managed resources of list's kind by their
// state.
func count(mgr ctrl.Manager, o controller.Options, list resource.ManagedList) error {
	return mgr.Add(statemetrics.NewMRStateRecorder(mgr.GetClient(), o.Logger, o.MetricOptions.MRStateMetrics, list, o.MetricOptions.PollStateMetricInterval))
}
