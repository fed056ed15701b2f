package structs

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A decoder decodes values into one Go type. It is never called with null.
type decoder func(s *structpb.Value, into reflect.Value) error

var decoders sync.Map // reflect.Type to decoder

// Decode decodes s into the struct that into points to. Fields that the struct does not have are
// ignored. An error names the path of the value that does not fit.
func Decode(s *structpb.Struct, into any) error {
	rv := reflect.ValueOf(into)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return fmt.Errorf("cannot decode into %T: it is not a pointer", into)
	}
	return decoderOf(rv.Type().Elem())(structpb.NewStructValue(s), rv.Elem())
}

func decoderOf(t reflect.Type) decoder {
	if d, ok := decoders.Load(t); ok {
		return d.(decoder) //nolint:forcetypeassert // only decoders are stored
	}
	var (
		wg   sync.WaitGroup
		plan decoder
	)
	wg.Add(1)
	d, loaded := decoders.LoadOrStore(t, decoder(func(s *structpb.Value, into reflect.Value) error {
		wg.Wait()
		return plan(s, into)
	}))
	if loaded {
		return d.(decoder) //nolint:forcetypeassert // only decoders are stored
	}
	plan = newDecoder(t)
	wg.Done()
	decoders.Store(t, plan)
	return plan
}

var unmarshalerType = reflect.TypeFor[json.Unmarshaler]()

func newDecoder(t reflect.Type) decoder {
	switch t {
	case quantityType:
		return decodeQuantity
	case intOrStringType:
		return decodeIntOrString
	}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshalerType) {
		return decodeUnmarshaler
	}

	switch t.Kind() {
	case reflect.Pointer:
		elem := decoderOf(t.Elem())
		return func(s *structpb.Value, into reflect.Value) error {
			p := reflect.New(t.Elem())
			into.Set(p)
			return elem(s, p.Elem())
		}
	case reflect.Interface:
		return func(s *structpb.Value, into reflect.Value) error {
			into.Set(reflect.ValueOf(s.AsInterface()))
			return nil
		}
	case reflect.Struct:
		return newStructDecoder(t)
	case reflect.Map:
		return newMapDecoder(t)
	case reflect.Slice:
		return newSliceDecoder(t)
	case reflect.String:
		return func(s *structpb.Value, into reflect.Value) error {
			k, ok := s.GetKind().(*structpb.Value_StringValue)
			if !ok {
				return mismatch("a string", s)
			}
			into.SetString(k.StringValue)
			return nil
		}
	case reflect.Bool:
		return func(s *structpb.Value, into reflect.Value) error {
			k, ok := s.GetKind().(*structpb.Value_BoolValue)
			if !ok {
				return mismatch("true or false", s)
			}
			into.SetBool(k.BoolValue)
			return nil
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return func(s *structpb.Value, into reflect.Value) error {
			k, ok := s.GetKind().(*structpb.Value_NumberValue)
			if !ok || k.NumberValue != math.Trunc(k.NumberValue) || into.OverflowInt(int64(k.NumberValue)) {
				return mismatch("a whole number", s)
			}
			into.SetInt(int64(k.NumberValue))
			return nil
		}
	case reflect.Float32, reflect.Float64:
		return func(s *structpb.Value, into reflect.Value) error {
			k, ok := s.GetKind().(*structpb.Value_NumberValue)
			if !ok {
				return mismatch("a number", s)
			}
			into.SetFloat(k.NumberValue)
			return nil
		}
	default:
		return func(*structpb.Value, reflect.Value) error { return fmt.Errorf("unsupported type %s", t) }
	}
}

func newStructDecoder(t reflect.Type) decoder {
	type step struct {
		field

		decode decoder
	}
	fs := fields(t)
	steps := make([]step, len(fs))
	for i, f := range fs {
		steps[i] = step{field: f, decode: decoderOf(t.FieldByIndex(f.index).Type)}
	}
	return func(s *structpb.Value, into reflect.Value) error {
		k, ok := s.GetKind().(*structpb.Value_StructValue)
		if !ok {
			return mismatch("an object", s)
		}
		// In the order of the type, so that the same one of several errors is always returned.
		for i := range steps {
			st := &steps[i]
			v, ok := k.StructValue.GetFields()[st.name]
			if !ok || isNull(v) {
				continue
			}
			if err := st.decode(v, into.FieldByIndex(st.index)); err != nil {
				return at(st.name, err)
			}
		}
		return nil
	}
}

func newMapDecoder(t reflect.Type) decoder {
	elem := decoderOf(t.Elem())
	return func(s *structpb.Value, into reflect.Value) error {
		k, ok := s.GetKind().(*structpb.Value_StructValue)
		if !ok {
			return mismatch("an object", s)
		}
		m := reflect.MakeMapWithSize(t, len(k.StructValue.GetFields()))
		for _, name := range slices.Sorted(maps.Keys(k.StructValue.GetFields())) {
			v := k.StructValue.GetFields()[name]
			e := reflect.New(t.Elem()).Elem()
			if !isNull(v) {
				if err := elem(v, e); err != nil {
					return at(name, err)
				}
			}
			m.SetMapIndex(reflect.ValueOf(name).Convert(t.Key()), e)
		}
		into.Set(m)
		return nil
	}
}

func newSliceDecoder(t reflect.Type) decoder {
	if t.Elem().Kind() == reflect.Uint8 {
		return func(s *structpb.Value, into reflect.Value) error {
			b, err := base64.StdEncoding.DecodeString(s.GetStringValue())
			if err != nil {
				return mismatch("base64", s)
			}
			into.SetBytes(b)
			return nil
		}
	}
	elem := decoderOf(t.Elem())
	return func(s *structpb.Value, into reflect.Value) error {
		k, ok := s.GetKind().(*structpb.Value_ListValue)
		if !ok {
			return mismatch("a list", s)
		}
		out := reflect.MakeSlice(t, len(k.ListValue.GetValues()), len(k.ListValue.GetValues()))
		for i, v := range k.ListValue.GetValues() {
			if isNull(v) {
				continue
			}
			if err := elem(v, out.Index(i)); err != nil {
				return at(fmt.Sprintf("[%d]", i), err)
			}
		}
		into.Set(out)
		return nil
	}
}

func decodeQuantity(s *structpb.Value, into reflect.Value) error {
	text := s.GetStringValue()
	if n, ok := s.GetKind().(*structpb.Value_NumberValue); ok {
		text = fmt.Sprint(n.NumberValue)
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return mismatch("a quantity", s)
	}
	into.Set(reflect.ValueOf(q))
	return nil
}

func decodeIntOrString(s *structpb.Value, into reflect.Value) error {
	switch k := s.GetKind().(type) {
	case *structpb.Value_StringValue:
		into.Set(reflect.ValueOf(intstr.FromString(k.StringValue)))
	case *structpb.Value_NumberValue:
		into.Set(reflect.ValueOf(intstr.FromInt32(int32(k.NumberValue))))
	default:
		return mismatch("a number or a string", s)
	}
	return nil
}

// decodeUnmarshaler decodes into the few types that read their own JSON.
func decodeUnmarshaler(s *structpb.Value, into reflect.Value) error {
	b, err := s.MarshalJSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into.Addr().Interface()); err != nil {
		if into.Type() == timeType {
			return mismatch("a time like "+time.RFC3339, s)
		}
		return err
	}
	return nil
}

func isNull(v *structpb.Value) bool {
	if v == nil || v.GetKind() == nil {
		return true
	}
	_, null := v.GetKind().(*structpb.Value_NullValue)
	return null
}

// pathError is an error with the path in the object of the value that does not fit.
type pathError struct {
	path string
	err  error
}

func (e *pathError) Error() string { return e.path + ": " + e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

func at(step string, err error) error {
	pe, ok := err.(*pathError) //nolint:errorlint // the path is only ever outermost
	if !ok {
		return &pathError{path: step, err: err}
	}
	sep := "."
	if pe.path[0] == '[' {
		sep = ""
	}
	return &pathError{path: step + sep + pe.path, err: pe.err}
}

// mismatch returns an error about a value of a wrong type. It does not contain the value, which may
// be a secret.
func mismatch(want string, got *structpb.Value) error {
	kind := "null"
	switch got.GetKind().(type) {
	case *structpb.Value_StringValue:
		kind = "a string"
	case *structpb.Value_NumberValue:
		kind = "a number"
	case *structpb.Value_BoolValue:
		kind = "a boolean"
	case *structpb.Value_ListValue:
		kind = "a list"
	case *structpb.Value_StructValue:
		kind = "an object"
	}
	return fmt.Errorf("must be %s, is %s", want, kind)
}
