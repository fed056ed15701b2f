package harness

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Field returns a field of an object as text, or "" if the field or the object does not exist.
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

// Number returns an integer field of an object, or 0 if the field or the object does not exist.
func Number(u *unstructured.Unstructured, path ...string) int64 {
	if u == nil {
		return 0
	}
	n, _, _ := unstructured.NestedInt64(u.Object, path...)
	return n
}

// Containers returns all containers of a pod or of a pod template, init containers first.
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

// Image returns the image of the first container.
func Image(u *unstructured.Unstructured) string {
	cs := Containers(u)
	if len(cs) == 0 {
		return ""
	}
	image, _ := cs[0]["image"].(string)
	return image
}

// List returns the objects in a list of an object.
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
