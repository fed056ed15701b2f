package compose

import (
	"encoding/binary"
	hashfnv "hash/fnv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"
)

func TestDigestTellsApart(t *testing.T) {
	// Each of these is a different object, even if they look alike.
	objs := map[string]map[string]any{
		"Empty":        {},
		"EmptyKey":     {"": ""},
		"Text":         {"a": "1"},
		"Number":       {"a": 1},
		"True":         {"a": true},
		"False":        {"a": false},
		"Null":         {"a": nil},
		"EmptyText":    {"a": ""},
		"EmptyObject":  {"a": map[string]any{}},
		"EmptyList":    {"a": []any{}},
		"Zero":         {"a": 0},
		"Half":         {"a": 0.5},
		"ListOfOne":    {"a": []any{"1"}},
		"ListOfTwo":    {"a": []any{"1", "2"}},
		"ListTurned":   {"a": []any{"2", "1"}},
		"ListJoined":   {"a": []any{"12"}},
		"ListNested":   {"a": []any{[]any{"1"}, "2"}},
		"ListNested2":  {"a": []any{[]any{"1", "2"}}},
		"TwoKeys":      {"a": "1", "b": "2"},
		"OneKeyNested": {"a": map[string]any{"b": "2"}},
		"Deeper":       {"a": map[string]any{"b": map[string]any{}}},
		"Sibling":      {"a": map[string]any{}, "b": map[string]any{}},
		"KeyInValue":   {"a": "1b", "c": "2"},
		"KeyInValue2":  {"a": "1", "bc": "2"},
	}
	seen := map[string]string{}
	for name, fields := range objs {
		d := digest(mustStruct(t, fields))
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
}

func TestDigestIgnoresMapOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawValue(3).Draw(t, "value")
		s := &structpb.Struct{Fields: map[string]*structpb.Value{"a": v}}
		// A clone has other maps, which Go iterates in another order.
		if a, b := digest(s), digest(proto.CloneOf(s)); a != b {
			t.Fatalf("two digests of %v: %s, %s", s, a, b)
		}
	})
}

// TestDigestStays: a digest is compared with that of an earlier release, so that it stays as it is.
func TestDigestStays(t *testing.T) {
	obj := mustStruct(t, map[string]any{
		"": "", "text": "ä", "long": strings.Repeat("x", 70_000), "number": -1.5, "zero": 0, "yes": true, "no": false, "null": nil,
		"object": map[string]any{"empty": map[string]any{}}, "list": []any{"1", []any{}, 2},
	})
	if want, got := "59917052cf909932", digest(obj); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// TestPropertyFNV: what is hashed faster here has the sum of the standard library.
func TestPropertyFNV(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, want := fnv{sum: offset64}, hashfnv.New64a()
		for range rapid.IntRange(1, 4).Draw(t, "values") {
			text, n := rapid.String().Draw(t, "text"), rapid.Uint64().Draw(t, "number")>>rapid.IntRange(0, 64).Draw(t, "shift")
			d.text(text)
			d.number('n', n)
			_, _ = want.Write(binary.LittleEndian.AppendUint64([]byte{'s'}, uint64(len(text))))
			_, _ = want.Write([]byte(text))
			_, _ = want.Write(binary.LittleEndian.AppendUint64([]byte{'n'}, n))
		}
		if d.sum != want.Sum64() {
			t.Fatalf("want %x, got %x", want.Sum64(), d.sum)
		}
	})
}

// drawValue draws any JSON value of up to this depth.
func drawValue(depth int) *rapid.Generator[*structpb.Value] {
	return rapid.Custom(func(t *rapid.T) *structpb.Value {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return structpb.NewStringValue(rapid.String().Draw(t, "text"))
		case 1:
			return structpb.NewNumberValue(float64(rapid.Int32().Draw(t, "number")))
		case 2:
			return structpb.NewBoolValue(rapid.Bool().Draw(t, "bool"))
		case 3:
			return structpb.NewNullValue()
		case 4:
			return structpb.NewStructValue(&structpb.Struct{Fields: rapid.MapOfN(rapid.String(), drawValue(depth-1), 0, 6).Draw(t, "fields")})
		default:
			return structpb.NewListValue(&structpb.ListValue{Values: rapid.SliceOfN(drawValue(depth-1), 0, 4).Draw(t, "values")})
		}
	})
}
