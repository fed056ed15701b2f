package explain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// Cluster is what facts are read from. Its methods return the errors of the API server for what may
// not be read.
type Cluster interface {
	// Tree returns an object, what it composes, and what the claims among that compose. It is empty
	// where the object does not exist.
	Tree(ctx context.Context, root plan.Object) ([]*unstructured.Unstructured, error)

	// List returns the objects of a kind that a label selector selects, in a namespace, or in all
	// where namespace is empty.
	List(ctx context.Context, apiVersion, kind, namespace, selector string) ([]*unstructured.Unstructured, error)

	// Get returns an object, or nil where there is none.
	Get(ctx context.Context, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error)

	// HiddenKinds returns the kinds of objects in trees that may not be read.
	HiddenKinds() []string

	// Log returns the end of a container's log, or with previous that of the container that ran
	// before it.
	Log(ctx context.Context, namespace, pod, container string, previous bool) (string, error)
}

const workersUnknown = "The pods of Crossplane's packages may not be read: whether Storeplane's function and provider run is not known"

// unread holds what is unknown where objects of a kind may not be read, as sentences.
var unread = map[string]string{
	"Event":                 "Events may not be read: what the cluster has reported is not known",
	"Pod":                   "Pods may not be read: why workloads are not ready is not known",
	"ReplicaSet":            "ReplicaSets may not be read: pods of Deployments are not known",
	"Job":                   "Jobs may not be read: whether they have failed is not known",
	"PersistentVolumeClaim": "PersistentVolumeClaims may not be read: whether volumes are bound is not known",
	"ResourceQuota":         "ResourceQuotas may not be read: what of them is used is not known",
	"Node":                  "Nodes may not be read: whether those of the pods are ready is not known",
	"Log":                   "Logs may not be read",
	"Function":              "Functions may not be read: whether Storeplane's is healthy is not known",
	"Provider":              "Providers may not be read: whether Storeplane's is healthy is not known",
	"Worker":                workersUnknown,
}

// Reader reads facts at one moment. It lists the objects of a namespace once for all claims.
type Reader struct {
	cluster Cluster
	now     time.Time

	mu    sync.Mutex
	lists map[listed]func() ([]*unstructured.Unstructured, error)
}

// listed identifies a list of objects in a namespace.
type listed struct{ kind, namespace, selector string }

// NewReader returns a reader of a cluster at a moment.
func NewReader(c Cluster, now time.Time) *Reader {
	return &Reader{cluster: c, now: now, lists: map[listed]func() ([]*unstructured.Unstructured, error){}}
}

// list lists objects, and returns the same result when called again.
func (r *Reader) list(ctx context.Context, apiVersion, kind, namespace, selector string) ([]*unstructured.Unstructured, error) {
	l := listed{kind, namespace, selector}
	r.mu.Lock()
	read, ok := r.lists[l]
	if !ok {
		read = sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
			return r.cluster.List(ctx, apiVersion, kind, namespace, selector)
		})
		r.lists[l] = read
	}
	r.mu.Unlock()
	return read()
}

// reading is the reading of the facts about one object, by many goroutines.
type reading struct {
	*Reader

	mu      sync.Mutex
	unknown []string
	err     error
}

// failed records the error of reading objects of a kind: what may not be read is unknown.
func (r *reading) failed(kind string, err error) {
	if err == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case kerrors.IsForbidden(err):
		r.unknown = append(r.unknown, unread[kind])
	case r.err == nil:
		r.err = fmt.Errorf("cannot read objects of kind %s: %w", kind, err)
	}
}

func (r *reading) stop(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// all returns the objects of a kind in a namespace.
func (r *reading) all(ctx context.Context, apiVersion, kind, namespace string) []*unstructured.Unstructured {
	out, err := r.list(ctx, apiVersion, kind, namespace, "")
	r.failed(kind, err)
	return out
}

// Read reads the facts about an object. The tree is empty where it does not exist.
func (r *Reader) Read(ctx context.Context, root plan.Object) (Facts, error) {
	return (&reading{Reader: r}).read(ctx, root)
}

func (r *reading) read(ctx context.Context, root plan.Object) (Facts, error) {
	f := Facts{Now: r.now}
	ns := root.Namespace
	kinds := []struct{ apiVersion, kind string }{{"apps/v1", "ReplicaSet"}, {"batch/v1", "Job"}, {"v1", "Pod"}, {"v1", "PersistentVolumeClaim"}}
	made := make([][]*unstructured.Unstructured, len(kinds))
	var events, quotas []*unstructured.Unstructured
	var all sync.WaitGroup
	for i, k := range kinds {
		all.Go(func() { made[i] = r.all(ctx, k.apiVersion, k.kind, ns) })
	}
	all.Go(func() { events = r.all(ctx, "v1", "Event", ns) })
	all.Go(func() { quotas = r.all(ctx, "v1", "ResourceQuota", ns) })
	all.Go(func() {
		tree, err := r.cluster.Tree(ctx, root)
		f.Tree = tree
		if err != nil {
			r.stop(fmt.Errorf("cannot read %s in namespace %s: %w", root, root.Namespace, err))
		}
	})
	all.Wait()
	if r.err != nil || len(f.Tree) == 0 {
		return f, r.err
	}
	f.Made = slices.Concat(made...)
	f.Events, f.Quotas = typed[corev1.Event](events), typed[corev1.ResourceQuota](quotas)
	r.second(ctx, &f)
	for _, kind := range r.cluster.HiddenKinds() {
		r.unknown = append(r.unknown, "Objects of kind "+kind+" may not be read: those of the claim are not known")
	}
	slices.Sort(r.unknown)
	f.Unknown = slices.Compact(r.unknown)
	return f, r.err
}

// second reads what the first facts call for: the nodes and the logs of unready pods, and the
// packages where an object is not in sync.
func (r *reading) second(ctx context.Context, f *Facts) {
	x := index(*f)
	var all sync.WaitGroup
	nodes := map[string]bool{}
	f.Logs = map[Container]string{}
	for _, u := range x.below(f.Tree[0]) {
		p := x.pods[u.GetName()]
		if u.GetKind() != "Pod" || p == nil || isReady(p) || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if n := p.Spec.NodeName; n != "" && !nodes[n] {
			nodes[n] = true
			all.Go(func() { r.node(ctx, f, n) })
		}
		if why := podfailure.Why(p, f.Now); why != nil && why.Container != "" {
			all.Go(func() { r.log(ctx, f, p, why) })
		}
	}
	if x.needsPackages() {
		for _, kind := range []string{"Function", "Provider"} {
			all.Go(func() {
				found := r.all(ctx, "pkg.crossplane.io/v1", kind, "")
				r.mu.Lock()
				defer r.mu.Unlock()
				f.Packages = append(f.Packages, found...)
			})
		}
		all.Go(func() {
			pods, err := r.list(ctx, "v1", "Pod", "", "pkg.crossplane.io/revision")
			r.failed("Worker", err)
			f.Workers = typed[corev1.Pod](pods)
		})
	}
	all.Wait()
}

// needsPackages reports whether a claim or managed resource is not in sync, or is being deleted.
func (f *facts) needsPackages() bool {
	return slices.ContainsFunc(f.Tree, func(u *unstructured.Unstructured) bool {
		if !isClaim(u) && !isManaged(u) {
			return false
		}
		synced := conditionOf(u, "Synced")
		return u.GetDeletionTimestamp() != nil || synced.status != "True" || synced.isOld(u)
	})
}

func (r *reading) node(ctx context.Context, f *Facts, name string) {
	u, err := r.cluster.Get(ctx, "v1", "Node", "", name)
	r.failed("Node", err)
	if err != nil || u == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f.Nodes = append(f.Nodes, typed[corev1.Node]([]*unstructured.Unstructured{u})...)
}

// log reads the log of a failed container: that of the previous run if it was restarted.
func (r *reading) log(ctx context.Context, f *Facts, p *corev1.Pod, why *podfailure.Failure) {
	previous := false
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.Name != why.Container {
			continue
		}
		if s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil {
			return // It never ran.
		}
		previous = s.LastTerminationState.Terminated != nil && s.State.Terminated == nil
	}
	text, err := r.cluster.Log(ctx, p.Namespace, p.Name, why.Container, previous)
	if err != nil && !kerrors.IsForbidden(err) {
		return // The node may be unreachable, or the container removed.
	}
	r.failed("Log", err)
	r.mu.Lock()
	defer r.mu.Unlock()
	f.Logs[Container{Pod: p.Name, Name: why.Container}] = text
}

// typed converts objects. It leaves out those that cannot be converted.
func typed[T any](objects []*unstructured.Unstructured) []T {
	out := make([]T, 0, len(objects))
	for _, u := range objects {
		var t T
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &t) == nil {
			out = append(out, t)
		}
	}
	return out
}
