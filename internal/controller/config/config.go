// Package config counts the managed resources that use a ProviderConfig or ClusterProviderConfig,
// and prevents the deletion of one that is in use.
package config

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
)

// Setup adds the controller of one kind of configuration to a manager. For both kinds, the
// ProviderConfigUsage that records a use is in the namespace of the managed resource that uses it.
func Setup(mgr ctrl.Manager, o controller.Options, kind string, of client.Object) error {
	name := providerconfig.ControllerName(kind)
	kinds := resource.ProviderConfigKinds{
		Config:    storeplanev1.GroupVersion.WithKind(kind),
		Usage:     storeplanev1.GroupVersion.WithKind(storeplanev1.ProviderConfigUsageKind),
		UsageList: storeplanev1.GroupVersion.WithKind(storeplanev1.ProviderConfigUsageKind + "List"),
	}
	r := providerconfig.NewReconciler(mgr, kinds,
		providerconfig.WithLogger(o.Logger.WithValues("controller", name)),
		providerconfig.WithRecorder(event.NewAPIRecorder(mgr.GetEventRecorderFor(name)))) //nolint:staticcheck // crossplane-runtime takes no other recorder.
	if err := kube.Warm(mgr.GetCache(), of, &storeplanev1.ProviderConfigUsage{}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(name).
		WithOptions(o.ForControllerRuntime()).
		For(of).
		Watches(&storeplanev1.ProviderConfigUsage{}, &resource.EnqueueRequestForProviderConfig{Kind: kind}).
		Complete(ratelimiter.NewReconciler(name, r, o.GlobalRateLimiter))
}
