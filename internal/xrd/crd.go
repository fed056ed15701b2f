package xrd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	v1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// CRD returns the CustomResourceDefinition that Crossplane derives from the definition. It checks
// that nothing of the definition is lost in the process, and that an API server accepts the result,
// including the estimated cost of its CEL rules.
func CRD(d *v1.CompositeResourceDefinition) (*extv1.CustomResourceDefinition, error) {
	crd, err := xcrd.ForCompositeResource(d)
	if err != nil {
		return nil, fmt.Errorf("cannot derive CustomResourceDefinition from %q: %w", d.GetName(), err)
	}
	if lost, err := lostPaths(d, crd); err != nil || len(lost) > 0 {
		return nil, errors.Join(err, lostError(d.GetName(), lost))
	}
	if err := check(crd); err != nil {
		return nil, fmt.Errorf("cannot accept CustomResourceDefinition %q: %w", crd.GetName(), err)
	}
	return crd, nil
}

// CRDs returns the CustomResourceDefinitions of the files definition.yaml of kinds.
func CRDs(files fs.FS) ([]*extv1.CustomResourceDefinition, error) {
	paths, err := fs.Glob(files, "*/definition.yaml")
	out := make([]*extv1.CustomResourceDefinition, 0, len(paths))
	for _, path := range paths {
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, err)
		}
		d, err := Parse(b)
		if err != nil {
			return nil, err
		}
		crd, err := CRD(d)
		if err != nil {
			return nil, err
		}
		out = append(out, crd)
	}
	return out, err
}

func lostError(name string, lost []string) error {
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf("cannot use CompositeResourceDefinition %q: Crossplane does not copy these parts of its schema into the CustomResourceDefinition, or replaces them:\n  %s", name, strings.Join(lost, "\n  "))
}

// check checks a CRD as an API server does when it is created.
func check(crd *extv1.CustomResourceDefinition) error {
	defaulted := crd.DeepCopy()
	extv1.SetDefaults_CustomResourceDefinition(defaulted)
	extv1.SetDefaults_CustomResourceDefinitionSpec(&defaulted.Spec)

	in := &apiextensions.CustomResourceDefinition{}
	if err := extv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(defaulted, in, nil); err != nil {
		return err
	}
	for _, v := range in.Spec.Versions {
		if v.Storage {
			in.Status.StoredVersions = []string{v.Name}
		}
	}
	// The owner of the CRD gets its UID when the definition is stored.
	in.OwnerReferences = nil
	return validation.ValidateCustomResourceDefinition(context.Background(), in).ToAggregate()
}

// lostPaths returns what the schemas of the definition contain and the CRD does not. Crossplane
// copies the fields of the root, of spec and of status that it has code for, and drops all others
// without an error.
func lostPaths(d *v1.CompositeResourceDefinition, crd *extv1.CustomResourceDefinition) ([]string, error) {
	lost := make([]string, 0)
	for i, v := range d.Spec.Versions {
		if v.Schema == nil {
			continue
		}
		want := map[string]any{}
		if err := json.Unmarshal(v.Schema.OpenAPIV3Schema.Raw, &want); err != nil {
			return nil, fmt.Errorf("cannot parse schema of version %q: %w", v.Name, err)
		}
		got, err := asMap(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("cannot compare schema of version %q: %w", v.Name, err)
		}
		// What the API server does not understand of a schema is lost too.
		known := &extv1.JSONSchemaProps{}
		if err := json.Unmarshal(v.Schema.OpenAPIV3Schema.Raw, known); err != nil {
			return nil, fmt.Errorf("cannot parse schema of version %q: %w", v.Name, err)
		}
		understood, err := asMap(known)
		if err != nil {
			return nil, fmt.Errorf("cannot compare schema of version %q: %w", v.Name, err)
		}
		lost = append(lost, missing(v.Name, want, understood)...)
		lost = append(lost, missing(v.Name, understood, got)...)
	}
	slices.Sort(lost)
	return slices.Compact(lost), nil
}

// missing returns the paths whose value in got is absent or differs from want. Additional values in
// got are no loss, except within a list.
func missing(path string, want, got any) []string {
	w, ok := want.(map[string]any)
	if !ok {
		if reflect.DeepEqual(want, got) {
			return nil
		}
		return []string{path}
	}
	g, ok := got.(map[string]any)
	if !ok {
		return []string{path}
	}
	out := make([]string, 0)
	for k, v := range w {
		if _, ok := g[k]; !ok {
			out = append(out, path+"."+k)
			continue
		}
		out = append(out, missing(path+"."+k, v, g[k])...)
	}
	return out
}

func asMap(v any) (map[string]any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(b, &out)
}
