package harness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Field of an object as text; "" when it, or the object, is not there.
func Field(u *unstructured.Unstructured, path ...string) string {
	if u == nil {
		return ""
	}
	v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	if !ok || v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// Number in an object; 0 when it, or the object, is not there.
func Number(u *unstructured.Unstructured, path ...string) int64 {
	if u == nil {
		return 0
	}
	n, _, _ := unstructured.NestedInt64(u.Object, path...)
	return n
}

// Containers of a pod, or of what has a template of pods.
func Containers(u *unstructured.Unstructured) []map[string]any {
	if u == nil {
		return nil
	}
	spec := []string{"spec"}
	if u.GetKind() != "Pod" {
		spec = []string{"spec", "template", "spec"}
	}
	var out []map[string]any
	for _, list := range []string{"initContainers", "containers"} {
		cs, _, _ := unstructured.NestedSlice(u.Object, append(spec, list)...)
		for _, c := range cs {
			if m, ok := c.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// Image of the first container.
func Image(u *unstructured.Unstructured) string {
	cs := Containers(u)
	if len(cs) == 0 {
		return ""
	}
	image, _ := cs[0]["image"].(string)
	return image
}

// List of objects inside an object.
func List(u *unstructured.Unstructured, path ...string) ([]map[string]any, error) {
	l, _, err := unstructured.NestedSlice(u.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("cannot read %v of %s: %w", path, u.GetName(), err)
	}
	var out []map[string]any
	for _, e := range l {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out, nil
}
