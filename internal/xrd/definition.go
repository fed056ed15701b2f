package xrd

import (
	"fmt"

	v1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	v2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// Parse parses the YAML of an apiextensions.crossplane.io/v2 CompositeResourceDefinition into the
// form that Crossplane stores and works with, which is v1. It returns an error for anything but one
// namespaced definition without unknown fields.
func Parse(definition []byte) (*v1.CompositeResourceDefinition, error) {
	d := &v2.CompositeResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, d); err != nil {
		return nil, fmt.Errorf("cannot parse CompositeResourceDefinition: %w", err)
	}
	if d.APIVersion != v2.SchemeGroupVersion.String() || d.Kind != v2.CompositeResourceDefinitionKind {
		return nil, fmt.Errorf("cannot parse CompositeResourceDefinition: it is a %q of %q", d.Kind, d.APIVersion)
	}
	// Some of Crossplane's tools read a definition without a scope as a cluster-scoped one, and
	// others as a namespaced one.
	if d.Spec.Scope != v2.CompositeResourceScopeNamespaced {
		return nil, fmt.Errorf("cannot use CompositeResourceDefinition %q: its scope is %q, not %q", d.GetName(), d.Spec.Scope, v2.CompositeResourceScopeNamespaced)
	}

	// v1 and v2 of the definition are the same stored object.
	s := &v1.CompositeResourceDefinition{}
	if err := yaml.Unmarshal(definition, s); err != nil {
		return nil, fmt.Errorf("cannot read CompositeResourceDefinition %q as v1: %w", d.GetName(), err)
	}
	// The API server sets this default when a definition is stored.
	if s.Spec.DefaultCompositionUpdatePolicy == nil {
		s.Spec.DefaultCompositionUpdatePolicy = ptr.To(xpv2.UpdateAutomatic)
	}
	return s, nil
}
