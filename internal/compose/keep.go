package compose

import (
	"maps"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
)

// keptMetadata is what of an object's metadata may be applied again.
var keptMetadata = []string{"name", "namespace", "labels", "annotations"}

// keep returns what to apply so that an observed object stays as it is: what
// was applied before, or where that is not known all of it but what the API
// server and Crossplane own. Leaving the object out of the response would delete
// it, and applying less would take its fields away.
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
			// A nested composite's spec.crossplane holds the references to
			// what it composed: an old copy of those would orphan its newest
			// resources.
			out.Fields[k] = without(v, "crossplane")
		default:
			out.Fields[k] = v
		}
	}
	return out
}

// pauses are annotations by which an object is paused: a person's, or its own
// claim's. Applied again they would be the claim's as well, and whoever set them
// could not take them away any more.
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

// has tells whether a struct has a field of a field.
func has(s *structpb.Struct, outer, inner string) bool {
	_, ok := s.GetFields()[outer].GetStructValue().GetFields()[inner]
	return ok
}

// without returns v less one field.
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
