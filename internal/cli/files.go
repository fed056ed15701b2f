package cli

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/storeplane/storeplane/internal/render"
)

// load reads the objects of a file, of the YAML files of a folder, or of the standard input, whose
// path is "-". An empty path has no objects.
func load(path string, in io.Reader) ([]*unstructured.Unstructured, error) {
	switch path {
	case "":
		return nil, nil
	case "-":
		b, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("cannot read the standard input: %w", err)
		}
		all, err := render.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("cannot read the standard input: %w", err)
		}
		return flat(all), nil
	}
	all, err := render.Load(path)
	return flat(all), err
}

// flat replaces Lists by their items: kubectl get prints several objects as one of kind List.
func flat(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range all {
		if !u.IsList() {
			out = append(out, u)
			continue
		}
		_ = u.EachListItem(func(o runtime.Object) error {
			if item, ok := o.(*unstructured.Unstructured); ok {
				out = append(out, item)
			}
			return nil
		})
	}
	return out
}
