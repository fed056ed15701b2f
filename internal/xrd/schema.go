package xrd

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	extvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// A Schema is how an API server defaults and validates one kind of claim.
type Schema struct {
	gvk        schema.GroupVersionKind
	structural *structuralschema.Structural
	openapi    extvalidation.SchemaValidator
	rules      *cel.Validator
}

// NewSchema compiles the schema of the stored version of a CRD.
func NewSchema(crd *extv1.CustomResourceDefinition) (*Schema, error) {
	for _, v := range crd.Spec.Versions {
		if !v.Storage {
			continue
		}
		s := &Schema{gvk: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}}
		if err := s.compile(v.Schema.OpenAPIV3Schema); err != nil {
			return nil, fmt.Errorf("cannot compile schema of %q: %w", crd.GetName(), err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("cannot compile schema of %q: no version of it is stored", crd.GetName())
}

func (s *Schema) compile(props *extv1.JSONSchemaProps) error {
	in := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, in, nil); err != nil {
		return err
	}
	var err error
	if s.structural, err = structuralschema.NewStructural(in); err != nil {
		return err
	}
	if err = defaulting.PruneDefaults(s.structural); err != nil {
		return err
	}
	if s.openapi, _, err = extvalidation.NewSchemaValidator(in); err != nil {
		return err
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return nil
}

// GroupVersionKind returns the kind of the claims that the schema is for.
func (s *Schema) GroupVersionKind() schema.GroupVersionKind { return s.gvk }

// Default returns a copy of the claim as an API server would store it: without unknown fields, with
// defaults, and in namespace default if the claim names none.
func (s *Schema) Default(claim *unstructured.Unstructured) *unstructured.Unstructured {
	out, _ := s.decode(claim)
	return out
}

// Validate validates a claim as at its creation. The result is nil or an *InvalidError. The claim's
// status is not checked: no client can create one.
func (s *Schema) Validate(claim *unstructured.Unstructured) error {
	return s.validateWith(claim, nil)
}

// ValidateUpdate validates the update of a claim from old to claim. The result is nil or an
// *InvalidError, which includes the rules that compare with the old claim.
func (s *Schema) ValidateUpdate(old, claim *unstructured.Unstructured) error {
	before, _ := s.decode(old)
	return s.validateWith(claim, before)
}

// ValidateStatus validates a claim as when its status is written. The result is nil or an
// *InvalidError.
func (s *Schema) ValidateStatus(claim *unstructured.Unstructured) error {
	obj, problems := s.decode(claim)
	// With the claim itself as the old object, ratcheting would accept everything.
	return invalid(obj, append(problems, explain(obj, s.validate(obj, nil))...))
}

func (s *Schema) validateWith(claim, old *unstructured.Unstructured) error {
	obj, problems := s.decode(claim)
	delete(obj.Object, "status")
	if old != nil {
		old = old.DeepCopy()
		delete(old.Object, "status")
	}
	return invalid(obj, append(problems, explain(obj, s.validate(obj, old))...))
}

// decode returns a copy of the claim as the API server decodes a request, pruned and with defaults.
// It also returns what was pruned, as kubectl's strict validation reports it.
func (s *Schema) decode(claim *unstructured.Unstructured) (*unstructured.Unstructured, []Problem) {
	obj := claim.DeepCopy()
	if obj.Object == nil {
		obj.Object = map[string]any{}
	}
	// The API server takes the namespace from the request when the object has none.
	if obj.GetNamespace() == "" {
		obj.SetNamespace("default")
	}
	if obj.GroupVersionKind() != s.gvk {
		return obj, nil
	}

	problems := make([]Problem, 0)
	_, _, unknown, err := objectmeta.GetObjectMetaWithOptions(obj.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		problems = append(problems, Problem{Path: "metadata", Message: err.Error()})
	}
	unknown = append(unknown, pruning.PruneWithOptions(obj.Object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, s.structural)
	defaulting.Default(obj.Object, s.structural)

	for _, path := range unknown {
		problems = append(problems, Problem{Path: path, Unknown: true})
	}
	return obj, problems
}

// validate validates in the order of the API server's own strategy for custom resources, whose
// package would bring in a whole etcd client.
func (s *Schema) validate(obj, old *unstructured.Unstructured) field.ErrorList {
	if errs := s.validateType(obj); len(errs) > 0 {
		return errs
	}

	meta := field.NewPath("metadata")
	errs := field.ErrorList{}
	rules := []cel.Option{}
	var before any

	if old == nil {
		errs = append(errs, metavalidation.ValidateObjectMetaAccessor(obj, true, metavalidation.NameIsDNSSubdomain, meta)...)
		errs = append(errs, extvalidation.ValidateCustomResource(nil, obj.Object, s.openapi)...)
	} else {
		// Values that were invalid before and have not changed are accepted.
		same := common.NewCorrelatedObject(obj.Object, old.Object, &model.Structural{Structural: s.structural})
		rules = append(rules, cel.WithRatcheting(same))
		before = old.Object
		errs = append(errs, validateImmutableMeta(obj, old)...)
		errs = append(errs, extvalidation.ValidateCustomResourceUpdate(nil, obj.Object, old.Object, s.openapi, extvalidation.WithRatcheting(same))...)
	}
	errs = append(errs, objectmeta.Validate(nil, obj.Object, s.structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, s.structural, old.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj.Object)...)
	}
	if s.rules == nil {
		return errs
	}
	if blocks(errs) {
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
	}
	broken, _ := s.rules.Validate(context.Background(), nil, s.structural, obj.Object, before, celconfig.RuntimeCELCostBudget, rules...)
	return append(errs, broken...)
}

func (s *Schema) validateType(obj *unstructured.Unstructured) field.ErrorList {
	errs := field.ErrorList{}
	if got, want := obj.GetAPIVersion(), s.gvk.GroupVersion().String(); got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, "must be "+want))
	}
	if got := obj.GetKind(); got != s.gvk.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), got, "must be "+s.gvk.Kind))
	}
	return errs
}

// validateImmutableMeta compares names only: the rest of an update's metadata, like
// resourceVersion, is left to the API server.
func validateImmutableMeta(obj, old *unstructured.Unstructured) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := metavalidation.ValidateImmutableField(obj.GetName(), old.GetName(), meta.Child("name"))
	return append(errs, metavalidation.ValidateImmutableField(obj.GetNamespace(), old.GetNamespace(), meta.Child("namespace"))...)
}

// blocks reports whether an object is too invalid for rules to be evaluated on it.
func blocks(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		default:
		}
	}
	return false
}
