package claims

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// Informers are what is needed of a cache.
type Informers interface {
	GetInformer(ctx context.Context, of client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// Watch the claims of a kind that is served, and tell Prometheus what becomes of
// them.
func Watch(ctx context.Context, from Informers, kind schema.GroupVersionKind, into *telemetry.Claims) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	// Nobody waits for it: what cannot be read is missing in the metrics, and
	// nothing else depends on it, as long as the cache is one for claims alone.
	informer, err := from.GetInformer(ctx, u, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", kind.Kind, err)
	}
	if _, err := informer.AddEventHandler(handler(kind, into)); err != nil {
		return fmt.Errorf("cannot listen to changes of %s: %w", kind.Kind, err)
	}
	return nil
}

// handler of what happens to claims of a kind.
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
			// One whose end was missed is told of later, by its last state.
			if key, err := toolscache.DeletionHandlingObjectToName(o); err == nil {
				into.Forget(kind.Kind, key.AsNamespacedName())
			}
		},
	}
}
