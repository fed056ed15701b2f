// Package fieldowner finds out, from an object's managed fields, what of it a manager has applied.
package fieldowner

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ComposedPrefix begins the field managers under which Crossplane applies what it composes.
const ComposedPrefix = "apiextensions.crossplane.io/composed"

// ConfigPrefix begins the field managers under which AppConfigs apply their fields to workloads.
const ConfigPrefix = "storeplane-config-"

// Others returns the fields of an object that managers other than Crossplane own, by manager and
// subresource.
func Others(obj *structpb.Struct) map[string]*structpb.Struct {
	out := map[string]*structpb.Struct{}
	for _, v := range obj.GetFields()["metadata"].GetStructValue().GetFields()["managedFields"].GetListValue().GetValues() {
		entry := v.GetStructValue().GetFields()
		if m := entry["manager"].GetStringValue(); !strings.HasPrefix(m, ComposedPrefix) {
			m += "/" + entry["subresource"].GetStringValue()
			out[m] = union(out[m], entry["fieldsV1"].GetStructValue())
		}
	}
	return out
}

// union returns the fields of both. A manager has an entry for each of its operations and API
// versions. Neither argument is changed.
func union(a, b *structpb.Struct) *structpb.Struct {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	out := &structpb.Struct{Fields: maps.Clone(a.GetFields())}
	if out.Fields == nil {
		out.Fields = map[string]*structpb.Value{}
	}
	for k, v := range b.GetFields() {
		if was := out.GetFields()[k].GetStructValue(); was != nil {
			v = structpb.NewStructValue(union(was, v.GetStructValue()))
		}
		out.Fields[k] = v
	}
	return out
}

// Has reports whether managed fields contain a path: "f:spec", "f:replicas".
func Has(fields *structpb.Struct, path ...string) bool {
	for _, p := range path {
		f, ok := fields.GetFields()[p]
		if !ok {
			return false
		}
		fields = f.GetStructValue()
	}
	return true
}

// Manager returns the field manager under which Crossplane applies what it composes for a claim
// (ComposedFieldOwnerName of crossplane/crossplane v2.4.0).
func Manager(claim string, kind schema.GroupKind) string {
	sum := sha256.Sum256([]byte(claim + kind.String()))
	return ComposedPrefix + "/" + hex.EncodeToString(sum[:])
}

// Applied returns the part of an object that a manager has applied, by the object's managed fields,
// and whether these contain that. Applied again it changes nothing. To apply the whole object would
// make the manager the owner of fields that an autoscaler or a user has set, and the next apply
// would remove them.
//
// The format is FieldsV1: "f:name" is a field, "k:{…}" the element of a list with these keys, "v:…"
// the element with this value, "i:n" the nth one, "." the value itself, and a key with nothing
// below it stands for the whole value
// (https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#FieldsV1).
func Applied(obj *structpb.Struct, manager string) (*structpb.Struct, bool) {
	meta := obj.GetFields()["metadata"].GetStructValue()
	for _, v := range meta.GetFields()["managedFields"].GetListValue().GetValues() {
		entry := v.GetStructValue().GetFields()
		if entry["subresource"].GetStringValue() != "" || entry["manager"].GetStringValue() != manager {
			continue
		}
		if set := entry["fieldsV1"].GetStructValue(); len(set.GetFields()) > 0 {
			return selectFields(obj, set), true
		}
	}
	return nil, false
}

// selectFields returns the fields of a struct that are in a set.
func selectFields(s, set *structpb.Struct) *structpb.Struct {
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(set.GetFields()))}
	for k, below := range set.GetFields() {
		field, ok := strings.CutPrefix(k, "f:")
		v, exists := s.GetFields()[field]
		if ok && exists {
			out.Fields[field] = selectValue(v, below.GetStructValue())
		}
	}
	return out
}

func selectValue(v *structpb.Value, set *structpb.Struct) *structpb.Value {
	_, self := set.GetFields()["."]
	if below := len(set.GetFields()); below == 0 || below == 1 && self && v.GetListValue() == nil && v.GetStructValue() == nil {
		return v
	}
	switch k := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		return structpb.NewStructValue(selectFields(k.StructValue, set))
	case *structpb.Value_ListValue:
		out := &structpb.ListValue{}
		for i, e := range k.ListValue.GetValues() {
			if chosen := selectElement(i, e, set); chosen != nil {
				out.Values = append(out.Values, chosen)
			}
		}
		return structpb.NewListValue(out)
	default:
		return v
	}
}

// selectElement returns the part of a list's element that is in the set, or nil if it is not in it.
func selectElement(index int, e *structpb.Value, set *structpb.Struct) *structpb.Value {
	for k, below := range set.GetFields() {
		kind, text, _ := strings.Cut(k, ":")
		switch kind {
		case "i":
			if text == strconv.Itoa(index) {
				return selectValue(e, below.GetStructValue())
			}
		case "v":
			if want, ok := parseValue(text); ok && proto.Equal(want, e) {
				return e
			}
		case "k":
			want, ok := parseValue(text)
			if !ok || !hasKeys(e.GetStructValue(), want.GetStructValue()) {
				continue
			}
			if len(below.GetStructValue().GetFields()) == 0 {
				return e
			}
			// Without its keys the element would be another one.
			out := selectFields(e.GetStructValue(), below.GetStructValue())
			for name := range want.GetStructValue().GetFields() {
				out.Fields[name] = e.GetStructValue().GetFields()[name]
			}
			return structpb.NewStructValue(out)
		}
	}
	return nil
}

func hasKeys(e, keys *structpb.Struct) bool {
	for name, v := range keys.GetFields() {
		if !proto.Equal(v, e.GetFields()[name]) {
			return false
		}
	}
	return len(keys.GetFields()) > 0
}

func parseValue(text string) (*structpb.Value, bool) {
	var raw any
	if json.Unmarshal([]byte(text), &raw) != nil {
		return nil, false
	}
	v, err := structpb.NewValue(raw)
	return v, err == nil
}
