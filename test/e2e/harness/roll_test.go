package harness

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestRolledInOrder: pods are replaced one at a time, that of the primary last.
func TestRolledInOrder(t *testing.T) {
	pod := func(name, uid, revision string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}}}
		u.SetName(name)
		u.SetUID(types.UID(uid))
		u.SetResourceVersion(revision)
		return u
	}
	// The revisions in which a pod is deleted, and its successor is ready.
	type times struct{ leave, come string }
	for name, c := range map[string]struct {
		reason  string
		pods    map[string]times
		primary string
		fails   bool
	}{
		"Order":        {reason: "One after the other.", pods: map[string]times{"a": {"10", "20"}, "b": {"30", "40"}}, primary: "b"},
		"Together":     {reason: "The first one is not back.", pods: map[string]times{"a": {"10", "40"}, "b": {"30", "50"}}, primary: "b", fails: true},
		"PrimaryFirst": {reason: "The primary hands over last.", pods: map[string]times{"a": {"10", "20"}, "b": {"30", "40"}}, primary: "a", fails: true},
		"Incomparable": {reason: "An order that is not known is no order.", pods: map[string]times{"a": {"x", "y"}, "b": {"z", "v"}}, primary: "b", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &World{history: map[Key][]Version{}}
			var old []*unstructured.Unstructured
			for _, name := range []string{"a", "b"} {
				old = append(old, pod(name, name, "1"))
				w.history[Key{"Pod", name}] = []Version{
					{Object: pod(name, name, "1")}, {Object: pod(name, name, c.pods[name].leave), Deleted: true}, {Object: pod(name, name+" again", c.pods[name].come)},
				}
			}
			if err := w.RolledInOrder(old, c.primary); (err != nil) != c.fails {
				t.Errorf("%s\nRolledInOrder(): %v", c.reason, err)
			}
		})
	}
}
