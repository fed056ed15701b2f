package functionstest

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Parse parses an object in YAML.
func Parse(t testing.TB, text string) *structpb.Struct {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

// Fields returns the fields of an object along a path, and creates those that are missing.
func Fields(s *structpb.Struct, path ...string) map[string]*structpb.Value {
	for _, p := range path {
		if s.GetFields()[p].GetStructValue() == nil {
			s.Fields[p] = structpb.NewStructValue(&structpb.Struct{})
		}
		s = s.GetFields()[p].GetStructValue()
		if s.Fields == nil {
			s.Fields = map[string]*structpb.Value{}
		}
	}
	return s.GetFields()
}

// Get returns the value at a path of field names and list indices.
func Get(s *structpb.Struct, path ...any) *structpb.Value {
	v := structpb.NewStructValue(s)
	for _, p := range path {
		switch k := p.(type) {
		case string:
			v = v.GetStructValue().GetFields()[k]
		case int:
			vs := v.GetListValue().GetValues()
			if k >= len(vs) {
				return nil
			}
			v = vs[k]
		}
	}
	return v
}

// Set writes a value at a path of field names, and creates those that are missing.
func Set(s *structpb.Struct, value any, path ...string) {
	v, err := structpb.NewValue(value)
	if err != nil {
		panic(err)
	}
	Fields(s, path[:len(path)-1]...)[path[len(path)-1]] = v
}

// As converts an object of the cluster, or one to apply, to its type.
func As[T any](t testing.TB, s *structpb.Struct) *T {
	t.Helper()
	if s == nil {
		t.Fatalf("there is no such %T", *new(T))
	}
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(Unstructured(s).Object, out); err != nil {
		t.Fatalf("cannot read a %T: %v", *out, err)
	}
	return out
}

// Unstructured converts an object as clients read it, with integers where a number has no fraction.
func Unstructured(s *structpb.Struct) *unstructured.Unstructured {
	object := s.AsMap()
	whole(object)
	return &unstructured.Unstructured{Object: object}
}

// whole converts numbers without a fraction to integers, in place.
func whole(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = whole(x[k])
		}
	case []any:
		for i := range x {
			x[i] = whole(x[i])
		}
	case float64:
		if x == float64(int64(x)) {
			return int64(x)
		}
	}
	return v
}
