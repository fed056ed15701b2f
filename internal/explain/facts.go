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

// Facts of a cluster about a claim, at one moment.
type Facts struct {
	Now time.Time

	// Tree is the claim, what it composes, and what the claims among that compose.
	Tree []*unstructured.Unstructured

	// Made are the ReplicaSets, Jobs, Pods and PersistentVolumeClaims of the namespace.
	Made []*unstructured.Unstructured

	// Events of the namespace.
	Events []corev1.Event

	// Nodes that pods run on.
	Nodes []corev1.Node

	// Quotas of the namespace.
	Quotas []corev1.ResourceQuota

	// Packages are the Functions and Providers that are installed, and Workers the pods of
	// these.
	Packages []*unstructured.Unstructured
	Workers  []corev1.Pod

	// Logs are the last lines of containers that have failed.
	Logs map[Container]string

	// Unknown is what could not be read, and what that means.
	Unknown []string
}

// Container of a pod.
type Container struct{ Pod, Name string }

// facts with indexes.
type facts struct {
	Facts

	byOwner  map[types.UID][]*unstructured.Unstructured
	byName   map[named]*unstructured.Unstructured
	pods     map[string]*corev1.Pod
	eventsOf map[named][]*corev1.Event
}

// named object of the namespace.
type named struct{ kind, name string }

func index(f Facts) *facts {
	out := &facts{
		Facts: f, byOwner: map[types.UID][]*unstructured.Unstructured{}, byName: map[named]*unstructured.Unstructured{},
		pods: map[string]*corev1.Pod{}, eventsOf: map[named][]*corev1.Event{},
	}
	for _, u := range slices.Concat(f.Tree, f.Made) {
		n := named{u.GetKind(), u.GetName()}
		if out.byName[n] != nil {
			continue // A Job may be composed, and of the namespace.
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

// deepest is how many owners an object may have above each other: a shop's pod has four.
const deepest = 8

// indexOwners of objects. Whoever may write an object says who owns it: one whose owners lead back
// to itself belongs to nothing.
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

// seen is when an event was seen last.
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

// lastEvent of an object with one of some reasons, or nil. One of an earlier object of that
// name says nothing of this one.
func (f *facts) lastEvent(u *unstructured.Unstructured, reasons ...string) *corev1.Event {
	for _, e := range slices.Backward(f.eventsOf[named{u.GetKind(), u.GetName()}]) {
		if slices.Contains(reasons, e.Reason) && isAbout(e, u) && !isBare(e) {
			return e
		}
	}
	return nil
}

// isBare tells whether an event of the kubelet has no more to say than the reason for which a
// container waits: Error: ErrImagePull.
func isBare(e *corev1.Event) bool {
	return strings.HasPrefix(e.Message, "Error: ") && !strings.Contains(e.Message[len("Error: "):], " ")
}

// isAbout tells whether an event is about this object, and not one of another group, or an
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

// children of an object: what it controls, by kind and name.
func (f *facts) children(u *unstructured.Unstructured) []*unstructured.Unstructured {
	if u.GetUID() == "" {
		return nil
	}
	return slices.SortedStableFunc(slices.Values(f.byOwner[u.GetUID()]), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// podsOf an object: those that it controls, and those that what it controls does.
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

// condition of an object's status.
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

// conditionOf a type, which has an empty status where there is none.
func conditionOf(u *unstructured.Unstructured, typ string) condition {
	for _, c := range conditionsOf(u) {
		if c.typ == typ {
			return c
		}
	}
	return condition{}
}

// isOld tells whether a condition is about an earlier generation of the object.
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
