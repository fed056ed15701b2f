package structs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// An encoder encodes values of one Go type. It returns nil for a value that is null in JSON.
type encoder func(v reflect.Value) (*structpb.Value, error)

var encoders sync.Map // reflect.Type to encoder

// Encode returns v, a struct or a pointer to one, as a Struct.
func Encode(v any) (*structpb.Struct, error) {
	rv := reflect.ValueOf(v)
	val, err := encoderOf(rv.Type())(rv)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", v, err)
	}
	s := val.GetStructValue()
	if s == nil {
		return nil, fmt.Errorf("cannot encode %T: it is not a struct", v)
	}
	return s, nil
}

// EncodeObject returns a Kubernetes object as the Struct to apply: without its status, which is not
// applied.
func EncodeObject(obj any) (*structpb.Struct, error) {
	s, err := Encode(obj)
	if err != nil {
		return nil, err
	}
	delete(s.GetFields(), "status")
	return s, nil
}

func encoderOf(t reflect.Type) encoder {
	if e, ok := encoders.Load(t); ok {
		return e.(encoder) //nolint:forcetypeassert // only encoders are stored
	}

	// A type may contain itself (JSONSchemaProps does), so an encoder that waits for the plan is
	// stored until the plan exists.
	var (
		wg   sync.WaitGroup
		plan encoder
	)
	wg.Add(1)
	e, loaded := encoders.LoadOrStore(t, encoder(func(v reflect.Value) (*structpb.Value, error) {
		wg.Wait()
		return plan(v)
	}))
	if loaded {
		return e.(encoder) //nolint:forcetypeassert // only encoders are stored
	}
	plan = newEncoder(t)
	wg.Done()
	encoders.Store(t, plan)
	return plan
}

var (
	quantityType    = reflect.TypeFor[resource.Quantity]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	timeType        = reflect.TypeFor[metav1.Time]()
	stringMapType   = reflect.TypeFor[map[string]string]()
	marshalerType   = reflect.TypeFor[json.Marshaler]()
)

func newEncoder(t reflect.Type) encoder {
	switch t {
	case quantityType:
		return encodeQuantity
	case intOrStringType:
		return encodeIntOrString
	case timeType:
		return encodeTime
	}
	if t.Kind() != reflect.Pointer && (t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType)) {
		return encodeMarshaler
	}

	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		return newElemEncoder(t)
	case reflect.Struct:
		return newStructEncoder(t)
	case reflect.Map:
		return newMapEncoder(t)
	case reflect.Slice, reflect.Array:
		return newListEncoder(t)
	case reflect.String:
		return func(v reflect.Value) (*structpb.Value, error) { return newString(v.String()), nil }
	case reflect.Bool:
		return func(v reflect.Value) (*structpb.Value, error) { return newBool(v.Bool()), nil }
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(v reflect.Value) (*structpb.Value, error) { return newNumber(float64(v.Int())), nil }
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return func(v reflect.Value) (*structpb.Value, error) { return newNumber(float64(v.Uint())), nil }
	case reflect.Float32, reflect.Float64:
		return func(v reflect.Value) (*structpb.Value, error) { return newNumber(v.Float()), nil }
	default:
		return func(reflect.Value) (*structpb.Value, error) { return nil, fmt.Errorf("unsupported type %s", t) }
	}
}

func newElemEncoder(t reflect.Type) encoder {
	if t.Kind() == reflect.Interface {
		return func(v reflect.Value) (*structpb.Value, error) {
			if v.IsNil() {
				return nil, nil // nil is JSON's null here
			}
			return encoderOf(v.Elem().Type())(v.Elem())
		}
	}
	elem := encoderOf(t.Elem())
	return func(v reflect.Value) (*structpb.Value, error) {
		if v.IsNil() {
			return nil, nil // nil is JSON's null here
		}
		return elem(v.Elem())
	}
}

func newStructEncoder(t reflect.Type) encoder {
	type step struct {
		field

		encode   encoder
		isStruct bool
	}
	fs := fields(t)
	steps := make([]step, len(fs))
	for i, f := range fs {
		ft := t.FieldByIndex(f.index).Type
		steps[i] = step{field: f, encode: encoderOf(ft), isStruct: ft.Kind() == reflect.Struct}
	}

	return func(v reflect.Value) (*structpb.Value, error) {
		// Most fields are empty. A map that is allocated for the fields that are not never grows.
		var room [16]entry
		found := room[:0]
		for i := range steps {
			s := &steps[i]
			fv := v.FieldByIndex(s.index)
			if s.omitEmpty && isEmpty(fv) {
				continue
			}
			val, err := s.encode(fv)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if val == nil || s.omitEmpty && s.isStruct && isEmptyStruct(val) {
				continue
			}
			found = append(found, entry{s.name, val})
		}
		out := make(map[string]*structpb.Value, len(found))
		for _, e := range found {
			out[e.name] = e.value
		}
		return newStruct(out), nil
	}
}

// entry is an entry of a struct.
type entry struct {
	name  string
	value *structpb.Value
}

func newMapEncoder(t reflect.Type) encoder {
	if t.Key().Kind() != reflect.String {
		return func(reflect.Value) (*structpb.Value, error) {
			return nil, fmt.Errorf("unsupported type %s: its keys are not strings", t)
		}
	}
	if t == stringMapType {
		return encodeStringMap
	}
	elem := encoderOf(t.Elem())
	return func(v reflect.Value) (*structpb.Value, error) {
		if v.IsNil() {
			return nil, nil // nil is JSON's null here
		}
		out := make(map[string]*structpb.Value, v.Len())
		for it := v.MapRange(); it.Next(); {
			val, err := elem(it.Value())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", it.Key(), err)
			}
			if val == nil {
				val = structpb.NewNullValue()
			}
			out[it.Key().String()] = val
		}
		return newStruct(out), nil
	}
}

// encodeStringMap encodes labels, annotations and selectors, which most maps are, without
// reflection, which would allocate each of their values.
func encodeStringMap(v reflect.Value) (*structpb.Value, error) {
	m := v.Interface().(map[string]string) //nolint:forcetypeassert // chosen by type
	if m == nil {
		return nil, nil // nil is JSON's null here
	}
	out := make(map[string]*structpb.Value, len(m))
	for k, e := range m {
		out[k] = newString(e)
	}
	return newStruct(out), nil
}

func newListEncoder(t reflect.Type) encoder {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return func(v reflect.Value) (*structpb.Value, error) {
			if v.IsNil() {
				return nil, nil // nil is JSON's null here
			}
			return newString(base64.StdEncoding.EncodeToString(v.Bytes())), nil
		}
	}
	elem := encoderOf(t.Elem())
	return func(v reflect.Value) (*structpb.Value, error) {
		if v.Kind() == reflect.Slice && v.IsNil() {
			return nil, nil // nil is JSON's null here
		}
		out := make([]*structpb.Value, v.Len())
		for i := range out {
			val, err := elem(v.Index(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			if val == nil {
				val = structpb.NewNullValue()
			}
			out[i] = val
		}
		return newList(out), nil
	}
}

func encodeQuantity(v reflect.Value) (*structpb.Value, error) {
	q := v.Interface().(resource.Quantity) //nolint:forcetypeassert // chosen by type
	return newString(q.String()), nil
}

func encodeIntOrString(v reflect.Value) (*structpb.Value, error) {
	is := v.Interface().(intstr.IntOrString) //nolint:forcetypeassert // chosen by type
	if is.Type == intstr.String {
		return newString(is.StrVal), nil
	}
	return newNumber(float64(is.IntVal)), nil
}

func encodeTime(v reflect.Value) (*structpb.Value, error) {
	t := v.Interface().(metav1.Time) //nolint:forcetypeassert // chosen by type
	if t.IsZero() {
		return nil, nil // nil is JSON's null here
	}
	return newString(t.UTC().Format(time.RFC3339)), nil
}

// encodeMarshaler encodes the few types that write their own JSON.
func encodeMarshaler(v reflect.Value) (*structpb.Value, error) {
	p := reflect.New(v.Type())
	p.Elem().Set(v)
	b, err := json.Marshal(p.Interface())
	if err != nil {
		return nil, err
	}
	out := &structpb.Value{}
	if err := out.UnmarshalJSON(b); err != nil {
		return nil, err
	}
	if _, null := out.GetKind().(*structpb.Value_NullValue); null {
		return nil, nil // nil is JSON's null here
	}
	return out, nil
}

// isEmpty reports whether encoding/json regards a value as empty, or the value is a zero struct.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		// encoding/json never regards a struct as empty.
		return v.IsZero()
	default:
		return v.IsZero()
	}
}

func isEmptyStruct(v *structpb.Value) bool {
	s, ok := v.GetKind().(*structpb.Value_StructValue)
	return ok && len(s.StructValue.GetFields()) == 0
}
