package render

import (
	"context"
	"fmt"
	"io/fs"

	v1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/waves"
)

// composition is the Composition of one kind, and its YAML.
type composition struct {
	v1.Composition

	yaml []byte
}

// compositionFor returns the Composition of a kind, from a folder with one Composition in each
// file.
func compositionFor(files fs.FS, gvk schema.GroupVersionKind) (*composition, error) {
	all, err := compositionsOf(files)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		ref := c.Spec.CompositeTypeRef
		if ref.APIVersion == gvk.GroupVersion().String() && ref.Kind == gvk.Kind {
			return c, nil
		}
	}
	return nil, fmt.Errorf("cannot find a Composition of %s", gvk.Kind)
}

// compositionsOf returns the Compositions of a folder.
func compositionsOf(files fs.FS) ([]*composition, error) {
	paths, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list Compositions: %w", err)
	}
	out := make([]*composition, 0, len(paths))
	for _, path := range paths {
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return nil, fmt.Errorf("cannot read Composition %s: %w", path, err)
		}
		c := &composition{yaml: b}
		if err := yaml.UnmarshalStrict(b, &c.Composition); err != nil {
			return nil, fmt.Errorf("cannot parse Composition %s: %w", path, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// required returns what the steps of a Composition require before they are called, by requirement
// name.
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

// requiredSchemas returns the schemas that the steps of all Compositions require, of kinds that a
// cluster serves, by requirement name. They are empty: the function only checks that they exist.
func requiredSchemas(ctx context.Context, files fs.FS, serves func(context.Context, schema.GroupVersionKind) (bool, error)) (map[string]*fnv1.Schema, error) {
	all, err := compositionsOf(files)
	if err != nil {
		return nil, err
	}
	out := map[string]*fnv1.Schema{}
	for _, c := range all {
		for _, step := range c.Spec.Pipeline {
			if step.Requirements == nil {
				continue
			}
			for _, r := range step.Requirements.RequiredSchemas {
				served, err := serves(ctx, schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
				if err != nil {
					return nil, fmt.Errorf("cannot find out whether kind %s is served: %w", r.Kind, err)
				}
				if served {
					out[r.RequirementName] = &fnv1.Schema{OpenapiV3: &structpb.Struct{Fields: map[string]*structpb.Value{"type": structpb.NewStringValue("object")}}}
				}
			}
		}
	}
	return out, nil
}

// Settings selects the installation's EnvironmentConfig, as every Composition does.
func Settings() *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: waves.SettingsKind.GroupVersion().String(), Kind: waves.SettingsKind.Kind,
		Match: &fnv1.ResourceSelector_MatchName{MatchName: waves.SettingsName},
	}
}

// functions returns the names of the functions that the steps of the Composition call.
func (c *composition) functions() []string {
	out := make([]string, 0, len(c.Spec.Pipeline))
	for _, step := range c.Spec.Pipeline {
		out = append(out, step.FunctionRef.Name)
	}
	return out
}
