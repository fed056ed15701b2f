package xrd

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schemas are the schemas of several kinds of claims.
type Schemas map[schema.GroupVersionKind]*Schema

// Load loads the schemas of all files named definition.yaml in a file system, and checks that
// Crossplane and an API server accept them.
func Load(files fs.FS) (Schemas, error) { return load(files, New) }

// LoadReleased is Load for the definitions of a release. It skips the checks, which were done
// before and take most of the time.
func LoadReleased(files fs.FS) (Schemas, error) { return load(files, newUnchecked) }

func load(files fs.FS, compile func([]byte) (*Schema, error)) (Schemas, error) {
	var paths []string
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() == "definition.yaml" {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot find definitions: %w", err)
	}
	loaded, errs := make([]*Schema, len(paths)), make([]error, len(paths))
	var all sync.WaitGroup
	for i, path := range paths {
		all.Go(func() {
			b, err := fs.ReadFile(files, path)
			if err != nil {
				errs[i] = fmt.Errorf("cannot read %s: %w", path, err)
				return
			}
			if loaded[i], err = compile(b); err != nil {
				errs[i] = fmt.Errorf("cannot load %s: %w", path, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	out := Schemas{}
	for _, s := range loaded {
		out[s.GroupVersionKind()] = s
	}
	return out, nil
}

// New returns the schema of the YAML of one CompositeResourceDefinition.
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

// newUnchecked is New without the checks, for a definition that has been checked.
func newUnchecked(definition []byte) (*Schema, error) {
	d, err := Parse(definition)
	if err != nil {
		return nil, err
	}
	crd, err := xcrd.ForCompositeResource(d)
	if err != nil {
		return nil, fmt.Errorf("cannot derive CustomResourceDefinition from %q: %w", d.GetName(), err)
	}
	return NewSchema(crd)
}

// For returns the schema of the claim's kind. For an unknown kind the error names those that exist.
func (s Schemas) For(claim *unstructured.Unstructured) (*Schema, error) {
	gvk := claim.GroupVersionKind()
	if out, ok := s[gvk]; ok {
		return out, nil
	}
	known := make([]string, 0, len(s))
	for _, k := range s.Kinds() {
		known = append(known, fmt.Sprintf("%s (%s)", k.Kind, k.GroupVersion()))
	}
	return nil, fmt.Errorf("cannot find a definition of kind %q in %q: there are %s", gvk.Kind, claim.GetAPIVersion(), strings.Join(known, ", "))
}

// Kinds returns the kinds of claims, sorted by name.
func (s Schemas) Kinds() []schema.GroupVersionKind {
	return slices.SortedFunc(maps.Keys(s), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Kind, b.Kind) })
}

// Has reports whether a kind is one of the kinds of claims.
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

// Validate validates a claim as at its creation.
func (s Schemas) Validate(claim *unstructured.Unstructured) error {
	k, err := s.For(claim)
	if err != nil {
		return err
	}
	return k.Validate(claim)
}

// ValidateUpdate validates the update of a claim from old to claim.
func (s Schemas) ValidateUpdate(old, claim *unstructured.Unstructured) error {
	k, err := s.For(claim)
	if err != nil {
		return err
	}
	return k.ValidateUpdate(old, claim)
}

// ValidateStatus validates the status of a claim.
func (s Schemas) ValidateStatus(claim *unstructured.Unstructured) error {
	k, err := s.For(claim)
	if err != nil {
		return err
	}
	return k.ValidateStatus(claim)
}
