package xrd

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schemas of several kinds of claims.
type Schemas map[schema.GroupVersionKind]*Schema

// Load the schemas of all files in a file system that are named
// definition.yaml.
func Load(files fs.FS) (Schemas, error) {
	out := Schemas{}
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() != "definition.yaml" {
			return err
		}
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
		s, err := New(b)
		if err != nil {
			return fmt.Errorf("cannot load %s: %w", path, err)
		}
		out[s.GroupVersionKind()] = s
		return nil
	})
	return out, err
}

// New schema from the YAML of one CompositeResourceDefinition.
func New(definition []byte) (*Schema, error) {
	d, err := Parse(definition)
	if err != nil {
		return nil, err
	}
	crd, err := CRD(d)
	if err != nil {
		return nil, err
	}
	return NewSchema(crd)
}

// For the kind of the object. The error names the kinds that there are.
func (s Schemas) For(claim *unstructured.Unstructured) (*Schema, error) {
	gvk := claim.GroupVersionKind()
	if out, ok := s[gvk]; ok {
		return out, nil
	}
	known := make([]string, 0, len(s))
	for _, k := range slices.SortedFunc(maps.Keys(s), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Kind, b.Kind) }) {
		known = append(known, fmt.Sprintf("%s (%s)", k.Kind, k.GroupVersion()))
	}
	return nil, fmt.Errorf("cannot find a definition of kind %q in %q: there are %s", gvk.Kind, claim.GetAPIVersion(), strings.Join(known, ", "))
}

// Has tells whether an object is a claim of one of the kinds.
func (s Schemas) Has(gvk schema.GroupVersionKind) bool {
	_, ok := s[gvk]
	return ok
}

// Default returns a copy of the claim with its defaults filled in.
func (s Schemas) Default(claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	k, err := s.For(claim)
	if err != nil {
		return nil, err
	}
	return k.Default(claim), nil
}

// Validate a claim as it is when it is created.
func (s Schemas) Validate(claim *unstructured.Unstructured) error {
	k, err := s.For(claim)
	if err != nil {
		return err
	}
	return k.Validate(claim)
}

// ValidateUpdate of a claim from old to claim.
func (s Schemas) ValidateUpdate(old, claim *unstructured.Unstructured) error {
	k, err := s.For(claim)
	if err != nil {
		return err
	}
	return k.ValidateUpdate(old, claim)
}

// ValidateStatus of a claim.
func (s Schemas) ValidateStatus(claim *unstructured.Unstructured) error {
	k, err := s.For(claim)
	if err != nil {
		return err
	}
	return k.ValidateStatus(claim)
}
