package controller_test

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/controller/claims"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// informers are the informers of a cache, whose requests are recorded.
type informers struct {
	informertest.FakeInformers

	world *world
}

func (i *informers) GetInformer(ctx context.Context, o client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i.world.note(o.GetObjectKind().GroupVersionKind(), "", "list", "watch")
	return i.FakeInformers.GetInformer(ctx, o, opts...)
}

// watchOfClaims watches claims of every kind.
func watchOfClaims(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	from := &informers{FakeInformers: informertest.FakeInformers{Scheme: w.Scheme()}, world: w}
	for _, kind := range claims.Kinds {
		if err := claims.Watch(t.Context(), from, kind, telemetry.New(prometheus.NewRegistry()).Claims); err != nil {
			t.Fatal(err)
		}
	}
	return w
}
