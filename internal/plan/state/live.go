package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/storeplane/storeplane/internal/plan"
)

// parallel is how many objects are read at once.
const parallel = 16

// Live is the state of a cluster. It gets and lists objects, and applies them in dry runs only.
type Live struct {
	// WithoutSecrets makes Tree leave Secrets out without reading them.
	WithoutSecrets bool

	client dynamic.Interface
	core   corev1client.CoreV1Interface
	mapper meta.RESTMapper
	slots  chan struct{}

	mu      sync.Mutex
	unknown map[string]bool
	hidden  map[hidden]bool
	fetched map[string]*fetched
}

type fetched struct {
	once    sync.Once
	objects []*unstructured.Unstructured
	err     error
}

var _ plan.State = &Live{}

// NewLive returns the state of the cluster of a configuration.
func NewLive(config *rest.Config) (*Live, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = -1, 0 // No rate limit: the command reads what it needs and ends.
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	return &Live{
		client: client, core: core, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d)), slots: make(chan struct{}, parallel),
		unknown: map[string]bool{}, hidden: map[hidden]bool{}, fetched: map[string]*fetched{},
	}, nil
}

// Tree implements plan.State. Secrets that may not be read are left out.
func (l *Live) Tree(ctx context.Context, claim plan.Object) ([]*unstructured.Unstructured, error) {
	root, err := l.Get(ctx, claim.APIVersion, claim.Kind, claim.Namespace, claim.Name)
	if err != nil || root == nil {
		return nil, err
	}
	below, err := l.below(ctx, root, &sync.Map{})
	return append([]*unstructured.Unstructured{root}, below...), err
}

// reference refers to an object that a claim composes.
type reference struct{ apiVersion, kind, name string }

// below returns the objects that a claim refers to and controls, and those below them, each once. A
// user who may write a claim may write any references, also ones that lead back to the claim or to
// objects that only the user who exports it may read.
func (l *Live) below(ctx context.Context, claim *unstructured.Unstructured, seen *sync.Map) ([]*unstructured.Unstructured, error) {
	if _, again := seen.LoadOrStore(claim.GetUID(), true); again {
		return nil, nil
	}
	refs := referencesOf(claim)
	if l.WithoutSecrets {
		refs = slices.DeleteFunc(refs, func(r reference) bool { return r.kind == "Secret" })
	}
	found := make([][]*unstructured.Unstructured, len(refs))
	errs := make([]error, len(refs))
	var all sync.WaitGroup
	for i, r := range refs {
		all.Go(func() {
			u, err := l.Get(ctx, r.apiVersion, r.kind, claim.GetNamespace(), r.name)
			switch {
			case kerrors.IsForbidden(err):
				l.forbidden(hidden{kind: r.kind, namespace: claim.GetNamespace(), name: r.name})
			case err != nil:
				errs[i] = err
			case u != nil && metav1.IsControlledBy(u, claim):
				below, err := l.below(ctx, u, seen)
				found[i], errs[i] = append([]*unstructured.Unstructured{u}, below...), err
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(found...), nil
}

func referencesOf(claim *unstructured.Unstructured) []reference {
	list, _, _ := unstructured.NestedSlice(claim.Object, "spec", "crossplane", "resourceRefs")
	var out []reference
	for _, e := range list {
		m, _ := e.(map[string]any)
		text := func(k string) string { s, _ := m[k].(string); return s }
		out = append(out, reference{apiVersion: text("apiVersion"), kind: text("kind"), name: text("name")})
	}
	return out
}

// hidden is an object that could not be read, or without a name all of a kind in a namespace.
type hidden struct{ kind, namespace, name string }

// forbidden records an object that may not be read: whether it exists, and its content, stay
// unknown.
func (l *Live) forbidden(h hidden) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden[h] = true
	l.unknown[unread(h.kind, "may not be read")] = true
}

// unread returns the consequence of not having read the objects of a kind, as a sentence.
func unread(kind, why string) string {
	if kind == "Secret" {
		return "Secrets " + why + ": what is generated counts as unchanged"
	}
	return kind + " objects " + why + ": those of the claim count as unchanged"
}

// Get returns an object. It is nil where there is none, or the cluster does not serve its kind.
func (l *Live) Get(ctx context.Context, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	resource, err := l.resource(schema.FromAPIVersionAndKind(apiVersion, kind), namespace)
	if err != nil || resource == nil {
		return nil, err
	}
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	u, err := resource.Get(ctx, name, metav1.GetOptions{})
	if kerrors.IsNotFound(err) {
		return nil, nil // there is none
	}
	if err != nil {
		return nil, err
	}
	return u, nil
}

// resource returns the client of a kind, or nil where the cluster does not serve it.
func (l *Live) resource(kind schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	m, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // the cluster does not serve it
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find out whether kind %s is served: %w", kind.Kind, err)
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return l.client.Resource(m.Resource), nil
	}
	return l.client.Resource(m.Resource).Namespace(namespace), nil
}

// Fetch implements plan.State. What may not be read counts as missing, and is listed as unknown.
func (l *Live) Fetch(ctx context.Context, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	l.mu.Lock()
	f, ok := l.fetched[sel.String()]
	if !ok {
		f = &fetched{}
		l.fetched[sel.String()] = f
	}
	l.mu.Unlock()
	f.once.Do(func() { f.objects, f.err = l.fetch(ctx, sel) })
	return f.objects, f.err
}

func (l *Live) fetch(ctx context.Context, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	h := hidden{kind: sel.GetKind(), namespace: sel.GetNamespace(), name: sel.GetMatchName()}
	if h.name != "" {
		u, err := l.Get(ctx, sel.GetApiVersion(), h.kind, h.namespace, h.name)
		if kerrors.IsForbidden(err) {
			l.forbidden(h)
			return nil, nil
		}
		if err != nil || u == nil {
			return nil, err
		}
		return []*unstructured.Unstructured{u}, nil
	}
	out, err := l.List(ctx, sel.GetApiVersion(), h.kind, h.namespace, labels.Set(sel.GetMatchLabels().GetLabels()).String())
	if kerrors.IsForbidden(err) {
		l.forbidden(h)
		return nil, nil
	}
	return out, err
}

// List returns the objects of a kind that a label selector selects, in a namespace, or in all where
// namespace is empty. There are none where the cluster does not serve the kind.
func (l *Live) List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]*unstructured.Unstructured, error) {
	resource, err := l.resource(schema.FromAPIVersionAndKind(apiVersion, kind), namespace)
	if err != nil || resource == nil {
		return nil, err
	}
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	list, err := resource.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// Serves implements plan.State.
func (l *Live) Serves(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	_, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}

// Unknown implements plan.State.
func (l *Live) Unknown() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.unknown))
}

// HiddenKinds returns the kinds of the objects that could not be read.
func (l *Live) HiddenKinds() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds := map[string]bool{}
	for h := range l.hidden {
		kinds[h.kind] = true
	}
	return slices.Sorted(maps.Keys(kinds))
}

// Hides implements plan.State.
func (l *Live) Hides(o plan.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden[hidden{kind: o.Kind, namespace: o.Namespace, name: o.Name}] || l.hidden[hidden{kind: o.Kind, namespace: o.Namespace}]
}

// HidesSecrets implements plan.State.
func (l *Live) HidesSecrets() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.hidden {
		if h.kind == "Secret" {
			return true
		}
	}
	return false
}
