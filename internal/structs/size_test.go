package structs

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

// TestPropertySize: Size is what protobuf computes itself, for values of any kind, depth and length.
func TestPropertySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStruct(t, 3)
		if got, want := Size(s), proto.Size(s); got != want {
			t.Errorf("Size(%v): want %d, got %d", s, want, got)
		}
	})
}

func drawStruct(t *rapid.T, depth int) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for range rapid.IntRange(0, 4).Draw(t, "fields") {
		s.Fields[rapid.StringN(0, -1, 300).Draw(t, "key")] = drawValue(t, depth-1)
	}
	return s
}

func drawValue(t *rapid.T, depth int) *structpb.Value {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		return structpb.NewStringValue(rapid.StringN(0, -1, 300).Draw(t, "string"))
	case 2:
		return structpb.NewNumberValue(rapid.Float64().Draw(t, "number"))
	case 3:
		return structpb.NewBoolValue(rapid.Bool().Draw(t, "bool"))
	case 4:
		return structpb.NewNullValue()
	case 5:
		return &structpb.Value{}
	case 6:
		return structpb.NewStructValue(drawStruct(t, depth))
	default:
		l := &structpb.ListValue{}
		for range rapid.IntRange(0, 4).Draw(t, "elements") {
			l.Values = append(l.Values, drawValue(t, depth-1))
		}
		return structpb.NewListValue(l)
	}
}
