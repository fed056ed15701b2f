package fieldowner

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Taken returns, by manager, the path of a field below a given one of an object that is declared
// with another value, that the manager has set, and that the manager ours no longer owns: an apply
// by force takes a field away from its previous owner. It returns nothing for an object that ours
// has never applied.
func Taken(observed, declared *structpb.Struct, ours string, below []string) map[string]string {
	meta := observed.GetFields()["metadata"].GetStructValue()
	var own *structpb.Struct
	others := map[string]*structpb.Struct{}
	for _, v := range meta.GetFields()["managedFields"].GetListValue().GetValues() {
		entry := v.GetStructValue().GetFields()
		manager, fields := entry["manager"].GetStringValue(), entry["fieldsV1"].GetStructValue()
		switch {
		case entry["subresource"].GetStringValue() != "":
		case manager == ours:
			own = union(own, fields)
		case !strings.HasPrefix(manager, ComposedPrefix):
			others[manager] = union(others[manager], fields)
		}
	}
	out := map[string]string{}
	if len(own.GetFields()) == 0 {
		return out
	}
	v, is := structpb.NewStructValue(declared), structpb.NewStructValue(observed)
	for _, field := range below {
		own, v, is = own.GetFields()["f:"+field].GetStructValue(), v.GetStructValue().GetFields()[field], is.GetStructValue().GetFields()[field]
		for manager := range others {
			others[manager] = others[manager].GetFields()["f:"+field].GetStructValue()
		}
	}
	for manager, fields := range others {
		if path := taken(fields, own, v, is, strings.Join(below, ".")); path != "" {
			out[manager] = path
		}
	}
	return out
}

// taken returns the path of the first field that others own, own does not contain, and that is
// declared with another value, or "".
func taken(others, own *structpb.Struct, declared, observed *structpb.Value, path string) string {
	for _, key := range slices.Sorted(maps.Keys(others.GetFields())) {
		if key == "." {
			continue
		}
		v, is := at(declared, key), at(observed, key)
		if v == nil {
			continue
		}
		below, ours := others.GetFields()[key].GetStructValue(), own.GetFields()[key]
		here := path + "." + strings.TrimPrefix(key, "f:")
		if len(below.GetFields()) == 0 {
			if ours == nil && !proto.Equal(v, is) {
				return here
			}
			continue
		}
		if found := taken(below, ours.GetStructValue(), v, is, here); found != "" {
			return found
		}
	}
	return ""
}

// at returns the part of a value that a key of managed fields names, or nil.
func at(v *structpb.Value, key string) *structpb.Value {
	if field, ok := strings.CutPrefix(key, "f:"); ok {
		return v.GetStructValue().GetFields()[field]
	}
	kind, text, _ := strings.Cut(key, ":")
	want, ok := parseValue(text)
	if !ok {
		return nil
	}
	for _, e := range v.GetListValue().GetValues() {
		if kind == "k" && hasKeys(e.GetStructValue(), want.GetStructValue()) || kind == "v" && proto.Equal(want, e) {
			return e
		}
	}
	return nil
}
