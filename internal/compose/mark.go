package compose

import (
	"hash"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// Annotations that the kernel puts on composed objects.
const (
	// AppliedAnnotation holds a hash of what was applied last. It tells an
	// object that already carries the newest declaration from one that is
	// about to: no generation in the cluster says that.
	AppliedAnnotation = "storeplane.example.com/applied"

	// HoldsDataAnnotation marks what stays when it is no longer declared.
	HoldsDataAnnotation = "storeplane.example.com/holds-data"
)

func annotation(obj *structpb.Struct, key string) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()[key].GetStringValue()
}

func annotate(obj *structpb.Struct, key, value string) {
	meta := child(obj, "metadata")
	child(meta, "annotations").Fields[key] = structpb.NewStringValue(value)
}

// child returns the struct under a field, made if it is missing.
func child(s *structpb.Struct, field string) *structpb.Struct {
	if c := s.GetFields()[field].GetStructValue(); c != nil {
		if c.Fields == nil {
			c.Fields = map[string]*structpb.Value{}
		}
		return c
	}
	c := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	s.Fields[field] = structpb.NewStructValue(c)
	return c
}

// digest of an object: the same for the same content, whatever the order of
// its maps. It guards against confusion, not against attack, and is never
// taken of a Secret.
func digest(obj *structpb.Struct) string {
	h := fnv.New64a()
	digestStruct(h, obj)
	return strconv.FormatUint(h.Sum64(), 16)
}

func digestStruct(h hash.Hash64, s *structpb.Struct) {
	for _, k := range slices.Sorted(maps.Keys(s.GetFields())) {
		digestString(h, k)
		digestValue(h, s.GetFields()[k])
	}
}

func digestValue(h hash.Hash64, v *structpb.Value) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		digestString(h, k.StringValue)
	case *structpb.Value_NumberValue:
		digestNumber(h, 'n', math.Float64bits(k.NumberValue))
	case *structpb.Value_BoolValue:
		if k.BoolValue {
			digestNumber(h, 'b', 1)
			return
		}
		digestNumber(h, 'b', 0)
	case *structpb.Value_StructValue:
		digestNumber(h, '{', uint64(len(k.StructValue.GetFields())))
		digestStruct(h, k.StructValue)
	case *structpb.Value_ListValue:
		digestNumber(h, '[', uint64(len(k.ListValue.GetValues())))
		for _, e := range k.ListValue.GetValues() {
			digestValue(h, e)
		}
	default:
		digestNumber(h, '0', 0)
	}
}

// Lengths go in before contents, so that no two different objects read alike.
func digestString(h hash.Hash64, s string) {
	digestNumber(h, 's', uint64(len(s)))
	_, _ = h.Write([]byte(s))
}

func digestNumber(h hash.Hash64, kind byte, n uint64) {
	_, _ = h.Write([]byte{kind, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(n >> 32), byte(n >> 40), byte(n >> 48), byte(n >> 56)})
}
