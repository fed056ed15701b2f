package explain

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tree returns an object and those below it as nodes, without ReplicaSets that have no pods.
func (f *facts) tree(u *unstructured.Unstructured, depth int) []Node {
	n := Node{Depth: depth, Object: objectOf(u)}
	n.Ready, n.Message = f.nodeState(u)
	out := []Node{n}
	for _, c := range f.children(u) {
		if c.GetKind() == "ReplicaSet" && count(c, "status", "replicas") == 0 {
			continue
		}
		out = append(out, f.tree(c, depth+1)...)
	}
	return out
}

// nodeState returns whether an object is healthy, and a short description of its state.
func (f *facts) nodeState(u *unstructured.Unstructured) (bool, string) {
	switch u.GetKind() {
	case "Pod":
		p := f.pods[u.GetName()]
		if p == nil {
			return true, ""
		}
		if c := f.pod(p); c != nil {
			return false, c.Message
		}
		if p.DeletionTimestamp != nil {
			return true, "is ending"
		}
		return isReady(p) || p.Status.Phase == "Succeeded", string(p.Status.Phase)
	case "ReplicaSet":
		return true, ""
	case "Deployment", "StatefulSet":
		want := cmp.Or(count(u, "spec", "replicas"), count(u, "status", "replicas"))
		return f.healthOf(u).IsHealthy(), fmt.Sprintf("%d of %d pods ready", count(u, "status", "readyReplicas"), want)
	case "PersistentVolumeClaim":
		return f.volume(u) == nil, statusText(u, "phase")
	}
	if isClaim(u) {
		state := StateOf(u)
		if phase := statusText(u, "phase"); phase != "" && state == NotReady {
			return false, phase
		}
		return state == Ready, string(state)
	}
	if isManaged(u) {
		c := f.managed(u)
		if c == nil {
			return true, ""
		}
		return false, c.Message
	}
	s := f.healthOf(u)
	return s.IsHealthy(), s.Message
}

func count(u *unstructured.Unstructured, fields ...string) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, fields...)
	return n
}
