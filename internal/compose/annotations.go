package compose

import (
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/types/known/structpb"
)

// Annotations that the kernel puts on composed objects.
const (
	// AppliedAnnotation holds a hash of what was applied last. It distinguishes an object that
	// carries the newest declaration from one that does not yet: no generation in the cluster shows
	// that.
	AppliedAnnotation = "storeplane.example.com/applied"

	// HoldsDataAnnotation marks an object that stays when it is no longer declared.
	HoldsDataAnnotation = "storeplane.example.com/holds-data"
)

func annotation(obj *structpb.Struct, key string) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["annotations"].GetStructValue().GetFields()[key].GetStringValue()
}

func annotate(obj *structpb.Struct, key, value string) {
	meta := child(obj, "metadata")
	child(meta, "annotations").Fields[key] = structpb.NewStringValue(value)
}

// child returns the struct under a field, and creates it if it is missing.
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

// digest returns a hash of an object that does not depend on the order of its maps. It guards
// against mistakes, not against attacks, and is never taken of a Secret.
func digest(obj *structpb.Struct) string {
	d := fnv{sum: offset64}
	d.object(obj)
	return strconv.FormatUint(d.sum, 16)
}

// fnv computes the 64-bit FNV-1a hash. The standard library's implementation takes slices of bytes,
// so every string would be copied.
type fnv struct {
	sum uint64

	// keys are those of the objects that are being hashed, the innermost last.
	keys []string
}

const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

func (d *fnv) object(s *structpb.Struct) {
	first := len(d.keys)
	for k := range s.GetFields() {
		d.keys = append(d.keys, k)
	}
	slices.Sort(d.keys[first:])
	for i := first; i < first+len(s.GetFields()); i++ {
		d.text(d.keys[i])
		d.value(s.GetFields()[d.keys[i]])
	}
	d.keys = d.keys[:first]
}

func (d *fnv) value(v *structpb.Value) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		d.text(k.StringValue)
	case *structpb.Value_NumberValue:
		d.number('n', math.Float64bits(k.NumberValue))
	case *structpb.Value_BoolValue:
		if k.BoolValue {
			d.number('b', 1)
			return
		}
		d.number('b', 0)
	case *structpb.Value_StructValue:
		d.number('{', uint64(len(k.StructValue.GetFields())))
		d.object(k.StructValue)
	case *structpb.Value_ListValue:
		d.number('[', uint64(len(k.ListValue.GetValues())))
		for _, e := range k.ListValue.GetValues() {
			d.value(e)
		}
	default:
		d.number('0', 0)
	}
}

// text hashes the length before the content, so that two different objects never give the same
// sequence of bytes.
func (d *fnv) text(s string) {
	d.number('s', uint64(len(s)))
	// A local variable stays in a register.
	sum := d.sum
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * prime64
	}
	d.sum = sum
}

// number hashes a kind and the eight bytes of a number, the lowest first.
func (d *fnv) number(kind byte, n uint64) {
	sum := (d.sum ^ uint64(kind)) * prime64
	zeros := 8
	for ; n != 0; n >>= 8 {
		sum = (sum ^ n&0xff) * prime64
		zeros--
	}
	d.sum = sum * zeroBytes[zeros]
}

// zeroBytes[n] is the factor by which n bytes of zero change a sum: most numbers are small.
var zeroBytes = func() (powers [9]uint64) {
	powers[0] = 1
	for i := 1; i < len(powers); i++ {
		powers[i] = powers[i-1] * prime64
	}
	return powers
}()
