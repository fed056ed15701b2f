package kube

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Watch keeps the last known state of some objects, also while the API server is away.
type Watch[T any] struct{ informer cache.SharedIndexInformer }

// Run runs the watch until the context ends.
func (w *Watch[T]) Run(ctx context.Context) { w.informer.RunWithContext(ctx) }

// Synced reports whether the objects have been read once.
func (w *Watch[T]) Synced() bool { return w.informer.HasSynced() }

// List returns the objects that are known, in no order.
func (w *Watch[T]) List() []*T {
	all := w.informer.GetStore().List()
	list := make([]*T, 0, len(all))
	for _, o := range all {
		if t, ok := o.(*T); ok {
			list = append(list, t)
		}
	}
	return list
}

// One returns the object of a watch by name, or nil.
func (w *Watch[T]) One() *T {
	for _, o := range w.List() {
		return o
	}
	return nil
}

// Watcher creates watches of objects.
type Watcher struct {
	Client *Client

	// Changed is called on every change that may matter.
	Changed func()

	// Failed is called on each failure to watch, with the resource that was watched.
	Failed func(what string, err error)
}

// ConfigMap returns a watch of a ConfigMap by its name.
func (w Watcher) ConfigMap(name string) (*Watch[corev1.ConfigMap], error) {
	return watch[corev1.ConfigMap](w, w.Client.core, "configmaps", byName(name), &corev1.ConfigMap{})
}

// Secret returns a watch of a Secret by its name.
func (w Watcher) Secret(name string) (*Watch[corev1.Secret], error) {
	return watch[corev1.Secret](w, w.Client.core, "secrets", byName(name), &corev1.Secret{})
}

// VolumeClaim returns a watch of a PersistentVolumeClaim by its name.
func (w Watcher) VolumeClaim(name string) (*Watch[corev1.PersistentVolumeClaim], error) {
	return watch[corev1.PersistentVolumeClaim](w, w.Client.core, "persistentvolumeclaims", byName(name), &corev1.PersistentVolumeClaim{})
}

// StatefulSet returns a watch of a StatefulSet by its name.
func (w Watcher) StatefulSet(name string) (*Watch[appsv1.StatefulSet], error) {
	return watch[appsv1.StatefulSet](w, w.Client.apps, "statefulsets", byName(name), &appsv1.StatefulSet{})
}

// Pods returns a watch of the Pods that a label selector selects.
func (w Watcher) Pods(selector string) (*Watch[corev1.Pod], error) {
	byLabel := func(o *metav1.ListOptions) { o.LabelSelector = selector }
	return watch[corev1.Pod](w, w.Client.core, "pods", byLabel, &corev1.Pod{})
}

func byName(name string) func(*metav1.ListOptions) {
	return func(o *metav1.ListOptions) { o.FieldSelector = "metadata.name=" + name }
}

func watch[T any](w Watcher, client rest.Interface, resource string, narrow func(*metav1.ListOptions), kind runtime.Object) (*Watch[T], error) {
	informer := cache.NewSharedIndexInformer(cache.NewFilteredListWatchFromClient(client, resource, w.Client.namespace, narrow), kind, 0, cache.Indexers{})
	failed := func(_ context.Context, _ *cache.Reflector, err error) { w.Failed(resource, err) }
	if err := informer.SetWatchErrorHandlerWithContext(failed); err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", resource, err)
	}
	if err := informer.SetTransform(withoutManagedFields); err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", resource, err)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.Changed() },
		UpdateFunc: func(before, after any) {
			if matters(before, after) {
				w.Changed()
			}
		},
		DeleteFunc: func(any) { w.Changed() },
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", resource, err)
	}
	return &Watch[T]{informer: informer}, nil
}

// matters reports whether a change of an object may matter. Of a Pod only its deletion, its
// labels and its status do: Patroni keeps its positions in annotations, and writes them every
// few seconds.
func matters(before, after any) bool {
	a, ok := before.(*corev1.Pod)
	b, also := after.(*corev1.Pod)
	if !ok || !also {
		return true
	}
	return a.DeletionTimestamp.IsZero() != b.DeletionTimestamp.IsZero() || !maps.Equal(a.Labels, b.Labels) ||
		!equality.Semantic.DeepEqual(a.Status, b.Status)
}

// withoutManagedFields removes the managed fields, which halves the memory that the objects
// take.
func withoutManagedFields(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}
