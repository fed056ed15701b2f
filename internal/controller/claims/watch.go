package claims

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// Watch watches the claims of a kind that is served, and updates their metrics.
func Watch(ctx context.Context, from kube.Informers, kind schema.GroupVersionKind, into *telemetry.Claims) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	// There is no wait for the first sync: claims that cannot be read are missing in the metrics,
	// and nothing else depends on them, as long as the cache is one for claims alone.
	informer, err := from.GetInformer(ctx, u, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.Kind, err)
	}
	if _, err := informer.AddEventHandler(handler(kind, into)); err != nil {
		return fmt.Errorf("cannot listen to changes of %s: %w", kind.Kind, err)
	}
	return nil
}

// handler returns an event handler that updates the metrics of claims of a kind.
func handler(kind schema.GroupVersionKind, into *telemetry.Claims) toolscache.ResourceEventHandler {
	see := func(o any, fresh bool) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			into.Observe(read(u), fresh)
		}
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(o any, initial bool) { see(o, !initial) },
		UpdateFunc: func(_, o any) { see(o, false) },
		DeleteFunc: func(o any) {
			// A deletion that the watch missed is reported later, with the claim's last state.
			if key, err := toolscache.DeletionHandlingObjectToName(o); err == nil {
				into.Forget(kind.Kind, key.AsNamespacedName())
			}
		},
	}
}
