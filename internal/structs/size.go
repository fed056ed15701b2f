package structs

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"
)

// Size returns the size of a Struct on the wire, in bytes: what proto.Size returns, at a fraction of
// its time, since it needs no reflection. All field numbers of a Struct's messages are below 16, so
// that each tag has one byte.
func Size(s *structpb.Struct) int {
	total := 0
	for k, v := range s.GetFields() {
		total += delimited(delimited(len(k)) + delimited(valueSize(v)))
	}
	return total
}

// delimited returns the size of a field of a message: its tag, the length of its content, and that.
func delimited(content int) int { return 1 + protowire.SizeBytes(content) }

func valueSize(v *structpb.Value) int {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return delimited(len(k.StringValue))
	case *structpb.Value_StructValue:
		return delimited(Size(k.StructValue))
	case *structpb.Value_ListValue:
		total := 0
		for _, e := range k.ListValue.GetValues() {
			total += delimited(valueSize(e))
		}
		return delimited(total)
	case *structpb.Value_NumberValue:
		return 9
	case *structpb.Value_BoolValue, *structpb.Value_NullValue:
		return 2
	default:
		return 0
	}
}
