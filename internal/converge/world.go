package converge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// now replaces every time: a result must not depend on when it is computed.
const now = "2024-01-01T00:00:00Z"

// world is the simulated cluster.
type world struct {
	// objects are those of the claim, in the order in which they were created.
	objects []*object
	// others are the objects that exist beside the claim.
	others []*unstructured.Unstructured
	// beside are the existing objects that were fetched because the function required them. adopted
	// are those that a claim has adopted, as they were before.
	beside, adopted map[key]*unstructured.Unstructured
}

// object is an object of the world.
type object struct {
	// owner is the claim that composes the object, nil for the first claim.
	owner *object
	// component is the object's name among what the owner composes.
	component string
	// rendered is what Crossplane applied last, without what a cluster adds.
	rendered *unstructured.Unstructured
	// live is the object as the cluster has it.
	live *unstructured.Unstructured
	// seeded is true for a composed object that the cluster had before, and existed for a claim
	// that it had.
	seeded, existed bool

	// noted is a copy of live, of when the object was noted last, and version the number of its
	// changes that were noted.
	noted   map[string]any
	version int
	// read is what the last reconciliation of a claim has read. nil for other objects.
	read *inputs
}

func (o *object) ref() Ref { return Ref{Kind: o.live.GetKind(), Name: o.live.GetName()} }

type key struct {
	schema.GroupKind
	types.NamespacedName
}

func keyOf(u *unstructured.Unstructured) key {
	return key{GroupKind: u.GroupVersionKind().GroupKind(), NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}}
}

func newWorld(others []*unstructured.Unstructured) *world {
	return &world{others: others, beside: map[key]*unstructured.Unstructured{}, adopted: map[key]*unstructured.Unstructured{}}
}

// create adds an object that no object of the world owns.
func (w *world) create(u *unstructured.Unstructured) *object {
	o := &object{live: u.DeepCopy(), rendered: u.DeepCopy()}
	stamp(o.live)
	o.note()
	w.objects = append(w.objects, o)
	return o
}

func (w *world) find(k key) *object {
	for _, o := range w.objects {
		if keyOf(o.live) == k {
			return o
		}
	}
	return nil
}

// composedBy returns the objects that a claim composes, sorted by component.
func (w *world) composedBy(claim *object) []*object {
	out := make([]*object, 0)
	for _, o := range w.objects {
		if o.owner == claim {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int { return compareStrings(a.component, b.component) })
	return out
}

// remove removes an object and all that it composes.
func (w *world) remove(gone *object) {
	for _, o := range w.composedBy(gone) {
		w.remove(o)
	}
	w.objects = slices.DeleteFunc(w.objects, func(o *object) bool { return o == gone })
}

type change int

const (
	unchanged change = iota
	appeared
	changed
)

// apply applies an object by server-side apply: what is applied replaces what was applied before,
// and what the cluster added stays. complete changes the stored object as an API server does after
// merging, like filling in defaults.
func (w *world) apply(owner *object, component string, rendered *unstructured.Unstructured, complete func(*unstructured.Unstructured) *unstructured.Unstructured) (change, *object, error) {
	o := w.find(keyOf(rendered))
	if found := w.beside[keyOf(rendered)]; o == nil && found != nil {
		// The function applies over an existing object only if the claim may adopt it.
		o = &object{owner: owner, component: component, rendered: &unstructured.Unstructured{Object: map[string]any{}}, live: found.DeepCopy(), seeded: true}
		w.objects = append(w.objects, o)
		w.adopted[keyOf(rendered)] = found
	}
	if o == nil {
		o = &object{owner: owner, component: component, rendered: rendered, live: complete(rendered.DeepCopy())}
		stamp(o.live)
		o.note()
		w.objects = append(w.objects, o)
		return appeared, o, nil
	}
	if o.owner != owner {
		return unchanged, nil, fmt.Errorf("%s exists already and is not its own", o.ref())
	}
	if o.component != component {
		return unchanged, nil, fmt.Errorf("%s is component %s already", o.ref(), o.component)
	}

	merged := &unstructured.Unstructured{Object: merge(o.live.Object, o.rendered.Object, rendered.DeepCopy().Object)}
	merged = complete(merged)
	if !Equal(specOf(merged), specOf(o.live)) {
		merged.SetGeneration(o.live.GetGeneration() + 1)
	}
	what := unchanged
	if o.isChangedBy(merged, rendered) {
		what = changed
	}
	o.live, o.rendered = merged, rendered
	o.note()
	return what, o, nil
}

// isChangedBy reports whether an apply whose result is merged changes the object. Of an object that
// existed in the cluster before it is not certain what was applied last, so its result counts.
func (o *object) isChangedBy(merged, rendered *unstructured.Unstructured) bool {
	if !o.seeded {
		return !Equal(o.rendered.Object, rendered.Object)
	}
	return !Equal(specOf(o.live), specOf(merged)) ||
		!maps.Equal(o.live.GetLabels(), merged.GetLabels()) ||
		!maps.Equal(o.live.GetAnnotations(), merged.GetAnnotations())
}

// specOf returns the part of an object whose changes its generation counts.
func specOf(u *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		if k != "metadata" && k != "status" {
			out[k] = v
		}
	}
	return out
}

// stamp sets what an API server sets on creation.
func stamp(u *unstructured.Unstructured) {
	if u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
	if u.GetUID() == "" {
		u.SetUID(uid(u))
	}
	_ = unstructured.SetNestedField(u.Object, now, "metadata", "creationTimestamp")
}

// uid returns the UID of an object, by the rule of `crossplane composition render`.
func uid(u *unstructured.Unstructured) types.UID {
	id := u.GroupVersionKind().String() + "\x00" + u.GetNamespace() + "\x00" + u.GetName()
	return types.UID(uuid.NewSHA1(uuid.Nil, []byte(id)).String())
}

// snapshot holds copies of all live objects of the world.
type snapshot struct {
	live map[key]*unstructured.Unstructured
}

func (w *world) snapshot() *snapshot {
	s := &snapshot{live: make(map[key]*unstructured.Unstructured, len(w.objects))}
	for _, o := range w.objects {
		s.live[keyOf(o.live)] = o.live.DeepCopy()
	}
	return s
}

// changesSince returns the changes since a snapshot, as readable paths, sorted.
func (w *world) changesSince(before *snapshot) []string {
	out := make([]string, 0)
	seen := make(map[key]bool, len(w.objects))
	for _, o := range w.objects {
		seen[keyOf(o.live)] = true
		was, ok := before.live[keyOf(o.live)]
		if !ok {
			out = append(out, o.ref().String()+" appears")
			continue
		}
		for _, path := range differences("", was.Object, o.live.Object) {
			out = append(out, o.ref().String()+" "+path)
		}
	}
	for k, u := range before.live {
		if !seen[k] {
			out = append(out, u.GetKind()+"/"+u.GetName()+" is deleted")
		}
	}
	slices.Sort(out)
	return out
}

// differences lists the paths at which two JSON values differ.
func differences(path string, a, b any) []string {
	if Equal(a, b) {
		return nil
	}
	out := make([]string, 0)
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		for _, k := range sortedKeys(x, y) {
			out = append(out, differences(joinPath(path, k), x[k], y[k])...)
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			out = append(out, differences(path+"["+strconv.Itoa(i)+"]", x[i], y[i])...)
		}
		return out
	}
	return []string{path}
}

func joinPath(path, k string) string {
	if path == "" {
		return k
	}
	return path + "." + k
}
