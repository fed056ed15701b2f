package compose

import (
	"maps"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
)

// keptMetadata are the fields of an object's metadata that may be applied again.
var keptMetadata = []string{"name", "namespace", "labels", "annotations"}

// keep returns what to apply so that an observed object stays as it is: the fields that Crossplane
// applied before or, where these are not known, all fields except those of the API server and of
// Crossplane. An object that is missing in the response would be deleted, and a field that is not
// applied again would be removed.
func (c *Claim) keep(observed *structpb.Struct) *structpb.Struct {
	own, ok := fieldowner.Applied(observed, c.manager())
	if !ok {
		own = observed
	}
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(own.GetFields())+3)}
	for _, k := range []string{"apiVersion", "kind"} {
		if v, exists := observed.GetFields()[k]; exists {
			out.Fields[k] = v
		}
	}
	meta := unpaused(pick(own.GetFields()["metadata"].GetStructValue(), keptMetadata))
	maps.Copy(meta.GetFields(), pick(observed.GetFields()["metadata"].GetStructValue(), []string{"name", "namespace"}).GetFields())
	if len(meta.GetFields()) > 0 {
		out.Fields["metadata"] = structpb.NewStructValue(meta)
	}
	for k, v := range own.GetFields() {
		switch k {
		case "status", "metadata":
		case "spec":
			// spec.crossplane of a nested composite holds the references to what it composed:
			// applying an old copy of them would orphan its newest resources.
			out.Fields[k] = without(v, "crossplane")
		default:
			out.Fields[k] = v
		}
	}
	return out
}

// pauses are the annotations by which a user, or the claim of an object, pauses it. Applied again
// they would belong to Crossplane as well, and the user or claim that set them could no longer
// remove them.
var pauses = []string{xpmeta.AnnotationKeyReconciliationPaused, appsv1.PausedWithAnnotation}

func unpaused(metadata *structpb.Struct) *structpb.Struct {
	for _, p := range pauses {
		if has(metadata, "annotations", p) {
			metadata.Fields["annotations"] = without(metadata.GetFields()["annotations"], p)
		}
	}
	return metadata
}

func pick(s *structpb.Struct, fields []string) *structpb.Struct {
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(fields))}
	for _, f := range fields {
		if v, ok := s.GetFields()[f]; ok {
			out.Fields[f] = v
		}
	}
	return out
}

// has reports whether a struct has a field inner in its field outer.
func has(s *structpb.Struct, outer, inner string) bool {
	_, ok := s.GetFields()[outer].GetStructValue().GetFields()[inner]
	return ok
}

// without returns v without a field. It does not change v.
func without(v *structpb.Value, field string) *structpb.Value {
	s := v.GetStructValue()
	if _, ok := s.GetFields()[field]; !ok {
		return v
	}
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(s.GetFields()))}
	for k, f := range s.GetFields() {
		if k != field {
			out.Fields[k] = f
		}
	}
	return structpb.NewStructValue(out)
}
