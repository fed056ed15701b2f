package structs

import (
	"google.golang.org/protobuf/types/known/structpb"
)

// A Value, its kind and their content would be three allocations. The functions below allocate them
// as one. They are then freed as one too, which costs nothing here: all of them live as long as the
// response.

func newString(s string) *structpb.Value {
	x := &struct {
		value structpb.Value
		kind  structpb.Value_StringValue
	}{}
	x.kind.StringValue = s
	x.value.Kind = &x.kind
	return &x.value
}

func newNumber(n float64) *structpb.Value {
	x := &struct {
		value structpb.Value
		kind  structpb.Value_NumberValue
	}{}
	x.kind.NumberValue = n
	x.value.Kind = &x.kind
	return &x.value
}

func newBool(b bool) *structpb.Value {
	x := &struct {
		value structpb.Value
		kind  structpb.Value_BoolValue
	}{}
	x.kind.BoolValue = b
	x.value.Kind = &x.kind
	return &x.value
}

func newStruct(fields map[string]*structpb.Value) *structpb.Value {
	x := &struct {
		value structpb.Value
		kind  structpb.Value_StructValue
		elem  structpb.Struct
	}{}
	x.elem.Fields = fields
	x.kind.StructValue = &x.elem
	x.value.Kind = &x.kind
	return &x.value
}

func newList(values []*structpb.Value) *structpb.Value {
	x := &struct {
		value structpb.Value
		kind  structpb.Value_ListValue
		elem  structpb.ListValue
	}{}
	x.elem.Values = values
	x.kind.ListValue = &x.elem
	x.value.Kind = &x.kind
	return &x.value
}
