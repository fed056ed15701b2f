package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storeplane/storeplane/internal/plan"
)

// Facts is the state of a cluster, as far as it concerns one claim, at one moment.
type Facts struct {
	Now time.Time

	// Tree is the claim, the objects that it composes, and those that the claims among these
	// compose.
	Tree []*unstructured.Unstructured

	// Made are the ReplicaSets, Jobs, Pods and PersistentVolumeClaims of the claim's namespace.
	Made []*unstructured.Unstructured

	// Events are those of the namespace.
	Events []corev1.Event

	// Nodes are those to which the claim's unready pods are assigned.
	Nodes []corev1.Node

	// Quotas are those of the namespace.
	Quotas []corev1.ResourceQuota

	// Packages are the installed Functions and Providers, and Workers are their pods. Both are
	// empty unless a claim or managed resource is not in sync or is being deleted.
	Packages []*unstructured.Unstructured
	Workers  []corev1.Pod

	// Logs are the last lines of the logs of failed containers.
	Logs map[Container]string

	// Unknown lists in sentences what could not be read, and what is therefore unknown.
	Unknown []string
}

// Container names a container of a pod.
type Container struct{ Pod, Name string }

// facts are Facts with indexes.
type facts struct {
	Facts

	byOwner  map[types.UID][]*unstructured.Unstructured
	byName   map[named]*unstructured.Unstructured
	pods     map[string]*corev1.Pod
	eventsOf map[named][]*corev1.Event
}

// named identifies an object in the namespace.
type named struct{ kind, name string }

func index(f Facts) *facts {
	out := &facts{
		Facts: f, byOwner: map[types.UID][]*unstructured.Unstructured{}, byName: map[named]*unstructured.Unstructured{},
		pods: map[string]*corev1.Pod{}, eventsOf: map[named][]*corev1.Event{},
	}
	for _, u := range slices.Concat(f.Tree, f.Made) {
		n := named{u.GetKind(), u.GetName()}
		if out.byName[n] != nil {
			continue // A composed Job is in Tree and in Made.
		}
		out.byName[n] = u
		if u.GetKind() != "Pod" {
			continue
		}
		p := &corev1.Pod{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p) == nil {
			out.pods[p.Name] = p
		}
	}
	out.indexOwners(slices.Concat(f.Tree, f.Made))
	for i := range f.Events {
		e := &f.Events[i]
		n := named{e.InvolvedObject.Kind, e.InvolvedObject.Name}
		out.eventsOf[n] = append(out.eventsOf[n], e)
	}
	for _, events := range out.eventsOf {
		slices.SortStableFunc(events, func(a, b *corev1.Event) int { return seen(a).Compare(seen(b)) })
	}
	return out
}

// deepest is the largest number of owners that an object may have above each other: a pod of an
// EcommercePlatform has four.
const deepest = 8

// indexOwners indexes objects by their controllers. A client that may write an object may set any
// owner: objects whose chain of owners is longer, as a cycle is, are left out.
func (f *facts) indexOwners(objects []*unstructured.Unstructured) {
	owner := map[types.UID]types.UID{}
	for _, u := range objects {
		if by := metav1.GetControllerOf(u); by != nil && u.GetUID() != "" {
			owner[u.GetUID()] = by.UID
		}
	}
	seen := map[*unstructured.Unstructured]bool{}
	for _, u := range objects {
		by := metav1.GetControllerOf(u)
		if by == nil || f.byName[named{u.GetKind(), u.GetName()}] != u || seen[u] {
			continue
		}
		seen[u] = true
		steps, uid := 0, by.UID
		for ; uid != "" && steps <= deepest; steps++ {
			uid = owner[uid]
		}
		if steps <= deepest {
			f.byOwner[by.UID] = append(f.byOwner[by.UID], u)
		}
	}
}

// seen returns when an event was observed last.
func seen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

// lastEvent returns the last event of an object that has one of the reasons, or nil. Events of an
// earlier object of the same name do not count.
func (f *facts) lastEvent(u *unstructured.Unstructured, reasons ...string) *corev1.Event {
	for _, e := range slices.Backward(f.eventsOf[named{u.GetKind(), u.GetName()}]) {
		if slices.Contains(reasons, e.Reason) && isAbout(e, u) && !isBare(e) {
			return e
		}
	}
	return nil
}

// isBare reports whether an event of the kubelet only repeats the reason for which a container
// waits, such as "Error: ErrImagePull".
func isBare(e *corev1.Event) bool {
	return strings.HasPrefix(e.Message, "Error: ") && !strings.Contains(e.Message[len("Error: "):], " ")
}

// isAbout reports whether an event is about this object, and not about one of another group or an
// earlier one of its name.
func isAbout(e *corev1.Event, u *unstructured.Unstructured) bool {
	group := schema.FromAPIVersionAndKind(e.InvolvedObject.APIVersion, e.InvolvedObject.Kind).Group
	if e.InvolvedObject.APIVersion != "" && group != u.GroupVersionKind().Group {
		return false
	}
	return e.InvolvedObject.UID == "" || u.GetUID() == "" || e.InvolvedObject.UID == u.GetUID()
}

func (f *facts) node(name string) *corev1.Node {
	for i := range f.Nodes {
		if f.Nodes[i].Name == name {
			return &f.Nodes[i]
		}
	}
	return nil
}

// children returns the objects that an object controls, by kind and name.
func (f *facts) children(u *unstructured.Unstructured) []*unstructured.Unstructured {
	if u.GetUID() == "" {
		return nil
	}
	return slices.SortedStableFunc(slices.Values(f.byOwner[u.GetUID()]), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// podsOf returns the pods below an object: those that it controls, and those of the objects that it
// controls.
func (f *facts) podsOf(u *unstructured.Unstructured) []*corev1.Pod {
	var out []*corev1.Pod
	for _, c := range f.children(u) {
		if c.GetKind() == "Pod" {
			if p := f.pods[c.GetName()]; p != nil {
				out = append(out, p)
			}
			continue
		}
		out = append(out, f.podsOf(c)...)
	}
	return out
}

func objectOf(u *unstructured.Unstructured) plan.Object {
	return plan.Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func podObject(p *corev1.Pod) plan.Object {
	return plan.Object{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
}

// condition is a condition in an object's status.
type condition struct {
	typ, status, reason, message string
	since                        *time.Time
	observed                     int64
}

func conditionsOf(u *unstructured.Unstructured) []condition {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var out []condition
	for _, e := range list {
		m, _ := e.(map[string]any)
		text := func(k string) string { s, _ := m[k].(string); return s }
		c := condition{typ: text("type"), status: text("status"), reason: text("reason"), message: text("message")}
		if at, err := time.Parse(time.RFC3339, text("lastTransitionTime")); err == nil {
			c.since = &at
		}
		c.observed, _ = m["observedGeneration"].(int64)
		out = append(out, c)
	}
	return out
}

// conditionOf returns the condition of a type, which has an empty status where there is none.
func conditionOf(u *unstructured.Unstructured, typ string) condition {
	for _, c := range conditionsOf(u) {
		if c.typ == typ {
			return c
		}
	}
	return condition{}
}

// isOld reports whether a condition is about an earlier generation of the object.
func (c condition) isOld(u *unstructured.Unstructured) bool {
	return c.observed > 0 && c.observed < u.GetGeneration()
}

func (c condition) evidence(u *unstructured.Unstructured) Evidence {
	text := c.typ + "=" + c.status
	if c.reason != "" {
		text += " " + c.reason
	}
	if c.message != "" {
		text += ": " + c.message
	}
	return Evidence{Source: FromCondition, Object: objectOf(u), At: c.since, Text: text}
}

func statusText(u *unstructured.Unstructured, field string) string {
	s, _, _ := unstructured.NestedString(u.Object, "status", field)
	return s
}
