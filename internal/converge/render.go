package converge

import (
	"errors"
	"fmt"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// render returns the objects that a response desires, as Crossplane applies them, by component.
func render(claim *unstructured.Unstructured, rsp *fnv1.RunFunctionResponse) (map[string]*unstructured.Unstructured, error) {
	out := make(map[string]*unstructured.Unstructured, len(rsp.GetDesired().GetResources()))
	for component, r := range rsp.GetDesired().GetResources() {
		u, err := toUnstructured(r.GetResource())
		if err != nil {
			return nil, fmt.Errorf("cannot read component %s: %w", component, err)
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("component %s has no name: Crossplane would make one up, which cannot be predicted", component)
		}
		if ns := u.GetNamespace(); ns != "" && ns != claim.GetNamespace() {
			return nil, fmt.Errorf("component %s is in namespace %s: a claim composes in its own namespace only", component, ns)
		}
		setMetadata(claim, component, u)
		out[component] = u
	}
	return out, nil
}

// setMetadata sets the metadata that Crossplane derives from the claim.
func setMetadata(claim *unstructured.Unstructured, component string, u *unstructured.Unstructured) {
	u.SetNamespace(claim.GetNamespace())
	xcrd.SetCompositionResourceName(u, component)
	// A claim that another one composes passes on the name in its own label.
	prefix := claim.GetLabels()[xcrd.LabelKeyNamePrefixForComposed]
	if prefix == "" {
		prefix = claim.GetName()
	}
	xpmeta.AddLabels(u, map[string]string{xcrd.LabelKeyNamePrefixForComposed: prefix})
	// Each object is new, so it has no other controller.
	_ = xpmeta.AddControllerReference(u, xpmeta.AsController(xpmeta.TypedReferenceTo(claim, claim.GroupVersionKind())))
}

func toUnstructured(s *structpb.Struct) (*unstructured.Unstructured, error) {
	m, ok := fromValue(structpb.NewStructValue(s)).(map[string]any)
	if !ok {
		return nil, errors.New("it is no object")
	}
	return &unstructured.Unstructured{Object: m}, nil
}

// fromValue returns a value as Kubernetes' decoder does, which distinguishes integers from other
// numbers.
func fromValue(v *structpb.Value) any {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		out := make(map[string]any, len(k.StructValue.GetFields()))
		for name, f := range k.StructValue.GetFields() {
			out[name] = fromValue(f)
		}
		return out
	case *structpb.Value_ListValue:
		out := make([]any, 0, len(k.ListValue.GetValues()))
		for _, e := range k.ListValue.GetValues() {
			out = append(out, fromValue(e))
		}
		return out
	case *structpb.Value_NumberValue:
		if n := int64(k.NumberValue); float64(n) == k.NumberValue {
			return n
		}
		return k.NumberValue
	case *structpb.Value_StringValue:
		return k.StringValue
	case *structpb.Value_BoolValue:
		return k.BoolValue
	}
	return nil
}

func toStruct(u *unstructured.Unstructured) (*structpb.Struct, error) {
	return structpb.NewStruct(u.Object)
}
