package render

import (
	"fmt"
	"io/fs"

	v1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// composition of one kind, and its YAML.
type composition struct {
	v1.Composition

	yaml []byte
}

// compositionFor a kind, from a folder with one Composition a file.
func compositionFor(files fs.FS, gvk schema.GroupVersionKind) (*composition, error) {
	paths, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list Compositions: %w", err)
	}
	for _, path := range paths {
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("cannot read Composition %s: %w", path, err)
		}
		c := &composition{yaml: b}
		if err := yaml.UnmarshalStrict(b, &c.Composition); err != nil {
			return nil, fmt.Errorf("cannot parse Composition %s: %w", path, err)
		}
		ref := c.Spec.CompositeTypeRef
		if ref.APIVersion == gvk.GroupVersion().String() && ref.Kind == gvk.Kind {
			return c, nil
		}
	}
	return nil, fmt.Errorf("cannot find a Composition of %s", gvk.Kind)
}

// required is what the steps of a Composition require before they are called.
func (c *composition) required() map[string]*fnv1.ResourceSelector {
	out := map[string]*fnv1.ResourceSelector{}
	for _, step := range c.Spec.Pipeline {
		if step.Requirements == nil {
			continue
		}
		for _, r := range step.Requirements.RequiredResources {
			sel := &fnv1.ResourceSelector{ApiVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace}
			if r.Name != nil {
				sel.Match = &fnv1.ResourceSelector_MatchName{MatchName: *r.Name}
			} else {
				sel.Match = &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: r.MatchLabels}}
			}
			out[r.RequirementName] = sel
		}
	}
	return out
}

// functions that the Composition's steps call.
func (c *composition) functions() []string {
	out := make([]string, 0, len(c.Spec.Pipeline))
	for _, step := range c.Spec.Pipeline {
		out = append(out, step.FunctionRef.Name)
	}
	return out
}
