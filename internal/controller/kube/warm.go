package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Informers is the part of a cache that watches objects.
type Informers interface {
	GetInformer(ctx context.Context, of client.Object, opts ...cache.InformerGetOption) (cache.Informer, error)
}

// Warm has a cache read objects of some kinds before a controller that watches them starts: a controller starts once its
// replica leads, and would read all of them only then. It does not wait until they are read. The queue of the controller
// stays empty until it starts.
func Warm(from Informers, objects ...client.Object) error {
	for _, o := range objects {
		if _, err := from.GetInformer(context.Background(), o, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("cannot watch %T: %w", o, err)
		}
	}
	return nil
}

// Metadata returns an object of a kind of which only the metadata is watched.
func Metadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	return o
}
