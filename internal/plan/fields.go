package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
)

// ignored are fields that have no effect by themselves: bookkeeping of Crossplane and of package
// compose.
var ignored = map[string]bool{
	"metadata.annotations[storeplane.example.com/applied]": true,
	"metadata.annotations[storeplane.example.com/pods]":    true,
	"spec.crossplane": true,
}

// fieldsOf returns how an object changes, in the fields that Crossplane applies before or after.
func fieldsOf(before, after *unstructured.Unstructured, applied ...*unstructured.Unstructured) []Field {
	d := &differ{hidden: after.GetAPIVersion() == "v1" && after.GetKind() == "Secret"}
	tops := map[string]bool{}
	for _, a := range applied {
		for k := range a.Object {
			tops[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(tops)) {
		switch k {
		case "apiVersion", "kind", "metadata", "status":
		default:
			d.compare(k, k, before.Object[k], after.Object[k])
		}
	}
	d.compareStrings("metadata.labels", before.GetLabels(), after.GetLabels())
	d.compareStrings("metadata.annotations", before.GetAnnotations(), after.GetAnnotations())
	return d.out
}

// differ collects differences with their paths.
type differ struct {
	hidden bool
	out    []Field
}

func (d *differ) compareStrings(path string, before, after map[string]string) {
	for _, k := range keysOf(before, after) {
		b, was := before[k]
		a, is := after[k]
		d.compare(path+"["+k+"]", k, orNil(b, was), orNil(a, is))
	}
}

func orNil(s string, ok bool) any {
	if !ok {
		return nil
	}
	return s
}

// compare adds the differences between two values of the field at a path.
func (d *differ) compare(path, field string, before, after any) {
	if ignored[path] || converge.Equal(before, after) || isEmpty(before) && isEmpty(after) || isQuantity(path) && sameQuantity(before, after) {
		return
	}
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			for _, k := range keysOf(b, a) {
				d.compare(join(path, k), k, b[k], a[k])
			}
			return
		}
	case []any:
		if a, ok := after.([]any); ok && d.compareList(path, field, b, a) {
			return
		}
	case string:
		if a, ok := after.(string); ok && (d.compareJSON(path, b, a) || d.compareLines(path, b, a)) {
			return
		}
	}
	f := Field{Path: path, Before: before, After: after}
	if d.hidden {
		f = Field{Path: path, Hidden: true}
	}
	d.out = append(d.out, f)
}

// compareList compares lists element by element, by their keys where the field's elements have
// keys. It returns false, and compares nothing, where they have none and the lengths differ.
func (d *differ) compareList(path, field string, before, after []any) bool {
	keys := converge.KeysOf(field, slices.Concat(before, after))
	if keys == nil {
		if len(before) != len(after) {
			return false
		}
		for i := range before {
			d.compare(path+"["+strconv.Itoa(i)+"]", "", before[i], after[i])
		}
		return true
	}
	for _, b := range before {
		d.compare(path+"["+nameOf(keys, b)+"]", "", b, converge.Element(keys, after, b))
	}
	for _, a := range after {
		if converge.Element(keys, before, a) == nil {
			d.compare(path+"["+nameOf(keys, a)+"]", "", nil, a)
		}
	}
	return true
}

// compareJSON compares texts that are JSON objects field by field, and reports whether they are.
func (d *differ) compareJSON(path, before, after string) bool {
	var b, a map[string]any
	if !strings.HasPrefix(before, "{") || !strings.HasPrefix(after, "{") || json.Unmarshal([]byte(before), &b) != nil || json.Unmarshal([]byte(after), &a) != nil {
		return false
	}
	d.compare(path, "", b, a)
	return true
}

// linePath is the beginning of the part of a path that names a line of a text.
const linePath = "[line "

// compareLines compares texts line by line. It returns false, and compares nothing, where the
// numbers of lines differ or there is one line.
func (d *differ) compareLines(path, before, after string) bool {
	b, a := strings.Split(before, "\n"), strings.Split(after, "\n")
	if len(b) != len(a) || len(b) == 1 {
		return false
	}
	for i := range b {
		d.compare(path+linePath+strconv.Itoa(i+1)+"]", "", b[i], a[i])
	}
	return true
}

func nameOf(keys []string, e any) string {
	m, _ := e.(map[string]any)
	parts := make([]string, 0, len(keys))
	for _, k := range keys {
		parts = append(parts, fmt.Sprint(m[k]))
	}
	return strings.Join(parts, ",")
}

// join appends a field to a path, in brackets where the field contains a separator.
func join(path, field string) string {
	if strings.ContainsAny(field, "./") {
		return path + "[" + field + "]"
	}
	return path + "." + field
}

func keysOf[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// isEmpty reports whether an API server treats a value like a missing one.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// isQuantity reports whether the value at a path is a quantity, which an API server may rewrite.
func isQuantity(path string) bool {
	return strings.Contains(path, ".resources.requests.") || strings.Contains(path, ".resources.limits.") || strings.HasSuffix(path, ".sizeLimit")
}

// sameQuantity reports whether two texts are the same quantity, as 1000m and 1 are.
func sameQuantity(before, after any) bool {
	b, ok := before.(string)
	a, also := after.(string)
	if !ok || !also {
		return false
	}
	x, err := resource.ParseQuantity(b)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(a)
	return err == nil && x.Cmp(y) == 0
}
