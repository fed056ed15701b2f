// Package manifests embeds the manifests that the end-to-end tests apply, in one folder for each
// subject.
package manifests

import (
	"embed"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed */*.yaml
var files embed.FS

// Read returns the only object of a file such as shop/store.yaml. ${NAME} in the file is replaced
// by the value of that name.
func Read(file string, values map[string]string) (*unstructured.Unstructured, error) {
	us, err := ReadAll(file, values)
	if err != nil {
		return nil, err
	}
	if len(us) != 1 {
		return nil, fmt.Errorf("cannot read manifest %s: it has %d objects, not one", file, len(us))
	}
	return us[0], nil
}

// ReadAll returns all objects of a file, in their order.
func ReadAll(file string, values map[string]string) ([]*unstructured.Unstructured, error) {
	raw, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifest %s: %w", file, err)
	}
	text := os.Expand(string(raw), func(name string) string { return values[name] })
	var out []*unstructured.Unstructured
	for doc := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return nil, fmt.Errorf("cannot parse manifest %s: %w", file, err)
		}
		out = append(out, u)
	}
	return out, nil
}
