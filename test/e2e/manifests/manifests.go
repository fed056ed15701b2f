// Package manifests embeds what the end-to-end tests apply: one folder a
// subject.
package manifests

import (
	"embed"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed */*.yaml
var files embed.FS

// Read an object from a file like shop/store.yaml. ${NAME} in it becomes the
// value of that name.
func Read(file string, values map[string]string) (*unstructured.Unstructured, error) {
	raw, err := files.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifest %s: %w", file, err)
	}
	text := os.Expand(string(raw), func(name string) string { return values[name] })
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		return nil, fmt.Errorf("cannot parse manifest %s: %w", file, err)
	}
	return u, nil
}
