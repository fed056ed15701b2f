package plan

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/label"
)

// ownParts are the component labels of the pods that run Storeplane's own images.
var ownParts = []string{string(appsv1.PostgreSQL), string(appsv1.MySQL), label.ComponentRepository, label.ComponentCache, label.ComponentBackup}

// images returns Storeplane's own images for a claim: those of the planner, or else those that the
// claim runs, so that the plan of an edit does not include the changes of another release.
func (p *Planner) images(tree []*unstructured.Unstructured) images.Set {
	if p.Images != nil {
		return *p.Images
	}
	out := images.Set{Registry: images.DefaultRegistry, Digests: images.Digests{}}
	for _, u := range tree {
		if !slices.Contains(ownParts, u.GetLabels()[label.Component]) {
			continue
		}
		for _, image := range imagesIn(u.Object) {
			name, digest, _ := strings.Cut(image, "@")
			if i := strings.LastIndexByte(name, '/'); i > 0 {
				out.Registry = name[:i]
				if digest != "" {
					out.Digests[name[i+1:]] = digest
				}
			}
		}
	}
	return out
}

// imagesIn returns the images of all containers in an object, at any depth.
func imagesIn(v any) []string {
	var out []string
	switch x := v.(type) {
	case map[string]any:
		for k, f := range x {
			if list, ok := f.([]any); ok && (k == "containers" || k == "initContainers") {
				for _, c := range list {
					if m, ok := c.(map[string]any); ok {
						if image, ok := m["image"].(string); ok {
							out = append(out, image)
						}
					}
				}
				continue
			}
			out = append(out, imagesIn(f)...)
		}
	case []any:
		for _, e := range x {
			out = append(out, imagesIn(e)...)
		}
	}
	return out
}
