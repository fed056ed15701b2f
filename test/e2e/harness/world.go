package harness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	toolswatch "k8s.io/client-go/tools/watch"
)

// Version is an object as a watch delivered it.
type Version struct {
	// At is when this process received it.
	At time.Time
	// Object is the object, in its last state if it was Deleted.
	Object  *unstructured.Unstructured
	Deleted bool
}

// Revision returns the resourceVersion: of two versions, whatever their kinds, the one with the
// smaller revision came first.
func (v Version) Revision() string { return v.Object.GetResourceVersion() }

// Key identifies an object in a World.
type Key struct{ Kind, Name string }

func (k Key) String() string { return k.Kind + " " + k.Name }

// KeyOf returns the key of an object.
func KeyOf(u *unstructured.Unstructured) Key { return Key{u.GetKind(), u.GetName()} }

// World holds every version of the objects in a namespace since the watch began.
type World struct {
	Namespace string

	mu      sync.Mutex
	changed chan struct{}
	history map[Key][]Version
	err     error
	stop    context.CancelFunc
}

// Watch watches a namespace until ctx ends or Stop is called. The present objects are in the World
// when Watch returns.
func (c *Cluster) Watch(ctx context.Context, namespace string) (*World, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &World{Namespace: namespace, changed: make(chan struct{}), history: map[Key][]Version{}, stop: cancel}
	for kind, gvr := range kinds {
		if clusterScoped[kind] {
			continue
		}
		if err := w.watch(ctx, c, kind, gvr); err != nil {
			cancel()
			return nil, err
		}
	}
	return w, nil
}

// Stop ends the watch.
func (w *World) Stop() { w.stop() }

// watcher adapts a client to RetryWatcher, which restarts watches.
type watcher func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)

func (f watcher) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, opts)
}

func (w *World) watch(ctx context.Context, c *Cluster, kind string, gvr schema.GroupVersionResource) error {
	client := c.Dynamic.Resource(gvr).Namespace(w.Namespace)
	events, err := w.begin(ctx, client, kind)
	if err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			err := w.follow(events, kind)
			// When a definition changes, the API server drops the history of its kind.
			if kerrors.IsResourceExpired(err) || kerrors.IsGone(err) {
				events, err = w.begin(ctx, client, kind)
			}
			if err != nil && ctx.Err() == nil {
				w.fail(fmt.Errorf("cannot go on watching %s: %w", kind, err))
				return
			}
		}
	}()
	return nil
}

// begin lists the objects of a kind, records what has changed, and starts to watch from there.
func (w *World) begin(ctx context.Context, client dynamic.ResourceInterface, kind string) (<-chan watch.Event, error) {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, err)
	}
	there := map[string]bool{}
	for i := range list.Items {
		u := &list.Items[i]
		there[u.GetName()] = true
		if last := w.Get(kind, u.GetName()); last == nil || last.GetResourceVersion() != u.GetResourceVersion() {
			w.add(kind, u, false)
		}
	}
	for _, last := range w.List(kind) {
		if !there[last.GetName()] {
			w.add(kind, last.DeepCopy(), true)
		}
	}
	rw, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), watcher(client.Watch))
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", kind, err)
	}
	return rw.ResultChan(), nil
}

// follow records events until the watch ends, which is always an error.
func (w *World) follow(events <-chan watch.Event, kind string) error {
	for e := range events {
		switch e.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			if u, ok := e.Object.(*unstructured.Unstructured); ok {
				w.add(kind, u, e.Type == watch.Deleted)
			}
		case watch.Error:
			return kerrors.FromObject(e.Object)
		case watch.Bookmark:
		}
	}
	return errors.New("the watch ended")
}

func (w *World) add(kind string, u *unstructured.Unstructured, deleted bool) {
	// Managed fields are most of what would be stored, and Patroni changes its pods every few
	// seconds.
	u.SetManagedFields(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	k := Key{kind, u.GetName()}
	w.history[k] = append(w.history[k], Version{At: time.Now(), Object: u, Deleted: deleted})
	w.wake()
}

func (w *World) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.wake()
}

// wake wakes all waiting calls. The caller holds the lock.
func (w *World) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Get returns an object that exists now, or nil.
func (w *World) Get(kind, name string) *unstructured.Unstructured {
	h := w.History(kind, name)
	if len(h) == 0 || h[len(h)-1].Deleted {
		return nil
	}
	return h[len(h)-1].Object
}

// Claim returns a claim that exists now, or the zero Claim.
func (w *World) Claim(kind, name string) Claim { return ClaimOf(w.Get(kind, name)) }

// List returns the objects of a kind that exist now, by name.
func (w *World) List(kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, k := range w.Keys() {
		if k.Kind != kind {
			continue
		}
		if u := w.Get(kind, k.Name); u != nil {
			out = append(out, u)
		}
	}
	return out
}

// History returns all versions of an object, oldest first.
func (w *World) History(kind, name string) []Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history[Key{kind, name}])
}

// Keys returns the keys of all objects that were ever in the namespace, sorted.
func (w *World) Keys() []Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.history), func(a, b Key) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Await waits until done returns true, and calls it again with each event. The second result of
// done describes the present state, for the error.
func (w *World) Await(ctx context.Context, within time.Duration, what string, done func() (ok bool, instead string)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		w.mu.Lock()
		changed, err := w.changed, w.err
		w.mu.Unlock()
		if err != nil {
			return fmt.Errorf("cannot wait for %s: %w", what, err)
		}
		ok, instead := done()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %s", within, what, instead)
		}
	}
}

// Hold returns an error if something is false at any time during the given duration. The second
// result of is describes the present state, for the error.
func (w *World) Hold(ctx context.Context, during time.Duration, what string, is func() (ok bool, instead string)) error {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	for {
		w.mu.Lock()
		changed, err := w.changed, w.err
		w.mu.Unlock()
		if err != nil {
			return fmt.Errorf("cannot watch whether %s: %w", what, err)
		}
		if ok, instead := is(); !ok {
			return fmt.Errorf("%s did not hold: %s", what, instead)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if ctx.Err() == context.DeadlineExceeded {
				return nil
			}
			return fmt.Errorf("cannot watch whether %s: %w", what, ctx.Err())
		}
	}
}

// AwaitSeen waits until this World contains an object that a change has returned, or a newer one.
// Before that, its checks could be about an older state.
func (w *World) AwaitSeen(ctx context.Context, u *unstructured.Unstructured) error {
	const within = 10 * time.Second
	return w.Await(ctx, within, u.GetKind()+" "+u.GetName()+" to be seen changed", func() (bool, string) {
		have := w.Get(u.GetKind(), u.GetName())
		return have != nil && have.GetGeneration() >= u.GetGeneration(), "it is the old one"
	})
}

// AwaitReady waits until a claim is Ready at its current generation.
func (w *World) AwaitReady(ctx context.Context, within time.Duration, kind, name string) error {
	return w.Await(ctx, within, kind+" "+name+" to be Ready", func() (bool, string) {
		c := w.Claim(kind, name)
		return c.Ready(), c.String()
	})
}

// AwaitGone waits until an object does not exist any more.
func (w *World) AwaitGone(ctx context.Context, within time.Duration, kind, name string) error {
	return w.Await(ctx, within, kind+" "+name+" to be gone", func() (bool, string) {
		return w.Get(kind, name) == nil, "it is still there"
	})
}
