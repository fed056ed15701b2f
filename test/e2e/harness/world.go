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

// Version of an object, as it came by watch.
type Version struct {
	// At is when this process saw it.
	At time.Time
	// Object as it was; as it was last, when Deleted.
	Object  *unstructured.Unstructured
	Deleted bool
}

// Revision is the resourceVersion: of two versions, whatever their kinds, the
// one with the smaller revision came first.
func (v Version) Revision() string { return v.Object.GetResourceVersion() }

// Key names an object in a World.
type Key struct{ Kind, Name string }

func (k Key) String() string { return k.Kind + " " + k.Name }

// KeyOf an object.
func KeyOf(u *unstructured.Unstructured) Key { return Key{u.GetKind(), u.GetName()} }

// World is all that is seen of a namespace by watching it: what is there, and
// every version that there ever was.
type World struct {
	Namespace string

	mu      sync.Mutex
	changed chan struct{}
	history map[Key][]Version
	err     error
	stop    context.CancelFunc
}

// Watch a namespace until ctx ends or Stop is called. What it sees begins before
// Watch returns.
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

// Stop watching.
func (w *World) Stop() { w.stop() }

// watcher adapts a client to what RetryWatcher starts again and again.
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
			// Where a definition is changed, the API server forgets what was before.
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

// begin to watch objects of a kind from what there is now.
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

// follow events until they end, which is an error.
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
	// Patroni changes its pods every few seconds, and who set which field when
	// is most of what there is to keep.
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

// wake all that wait. The lock is held.
func (w *World) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Get an object that is there now, or nil.
func (w *World) Get(kind, name string) *unstructured.Unstructured {
	h := w.History(kind, name)
	if len(h) == 0 || h[len(h)-1].Deleted {
		return nil
	}
	return h[len(h)-1].Object
}

// Claim that is there now.
func (w *World) Claim(kind, name string) Claim { return ClaimOf(w.Get(kind, name)) }

// List the objects of a kind that are there now, by name.
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

// History of an object, oldest first.
func (w *World) History(kind, name string) []Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history[Key{kind, name}])
}

// Keys of all that was ever seen, sorted.
func (w *World) Keys() []Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Keys(w.history), func(a, b Key) int {
		return strings.Compare(a.String(), b.String())
	})
}

// Await an event after which done is true. done also says what there is
// instead, for the error.
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

// Hold returns an error when something is not true, or does not stay so. is also
// says what there is instead.
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

// AwaitSeen waits until an object as it was returned by a change is seen here:
// before that, what is said of it may be about an older one.
func (w *World) AwaitSeen(ctx context.Context, u *unstructured.Unstructured) error {
	const within = 10 * time.Second
	return w.Await(ctx, within, u.GetKind()+" "+u.GetName()+" to be seen changed", func() (bool, string) {
		have := w.Get(u.GetKind(), u.GetName())
		return have != nil && have.GetGeneration() >= u.GetGeneration(), "it is the old one"
	})
}

// AwaitReady waits until a claim is Ready as it is now.
func (w *World) AwaitReady(ctx context.Context, within time.Duration, kind, name string) error {
	return w.Await(ctx, within, kind+" "+name+" to be Ready", func() (bool, string) {
		c := w.Claim(kind, name)
		return c.Ready(), c.String()
	})
}

// AwaitGone waits until an object is no more.
func (w *World) AwaitGone(ctx context.Context, within time.Duration, kind, name string) error {
	return w.Await(ctx, within, kind+" "+name+" to be gone", func() (bool, string) {
		return w.Get(kind, name) == nil, "it is still there"
	})
}
