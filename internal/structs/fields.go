package structs

import (
	"reflect"
	"strings"
)

// field is one JSON field of a struct, promoted ones included.
type field struct {
	name      string
	index     []int
	omitEmpty bool
}

// fields lists the JSON fields of struct type t as encoding/json names them.
// An embedded struct without a name is flattened.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, opts, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		inline := sf.Anonymous && name == "" || strings.Contains(opts, "inline")
		if inline && sf.Type.Kind() == reflect.Struct {
			for _, f := range fields(sf.Type) {
				f.index = append([]int{i}, f.index...)
				out = append(out, f)
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		omit := strings.Contains(opts, "omitempty") || strings.Contains(opts, "omitzero")
		out = append(out, field{name: name, index: []int{i}, omitEmpty: omit})
	}
	return out
}
