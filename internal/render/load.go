package render

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// LoadClaim reads the one claim in a YAML file.
func LoadClaim(path string) (*unstructured.Unstructured, error) {
	all, err := loadFile(path)
	if err != nil {
		return nil, err
	}
	switch len(all) {
	case 0:
		return nil, fmt.Errorf("cannot read claim: %s is empty", path)
	case 1:
		return all[0], nil
	default:
		names := make([]string, 0, len(all))
		for _, u := range all {
			names = append(names, u.GetKind()+"/"+u.GetName())
		}
		return nil, fmt.Errorf("cannot read claim: %s holds %d objects (%s), and only one can be rendered at a time: put each into a file of its own", path, len(all), strings.Join(names, ", "))
	}
}

// Load reads all objects of a YAML file, or of the YAML files of a folder.
func Load(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, unwrapPath(err))
	}
	if !info.IsDir() {
		return loadFile(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, unwrapPath(err))
	}
	out := make([]*unstructured.Unstructured, 0)
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(e.Name())) {
			continue
		}
		all, err := loadFile(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, all...)
	}
	return out, nil
}

func loadFile(path string) ([]*unstructured.Unstructured, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the user's file
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, unwrapPath(err))
	}
	out, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	return out, nil
}

// unwrapPath removes the path from an error of the file system, since the caller's error names it
// too.
func unwrapPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Parse parses a YAML stream. A duplicate key in an object is an error, as it is for kubectl.
func Parse(stream []byte) ([]*unstructured.Unstructured, error) {
	out := make([]*unstructured.Unstructured, 0)
	for _, doc := range documents(stream) {
		j, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, err
		}
		if string(j) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		// This decoder distinguishes integers from other numbers.
		if err := json.Unmarshal(j, &u.Object); err != nil {
			return nil, fmt.Errorf("it is no Kubernetes object: %w", err)
		}
		if u.GetAPIVersion() == "" || u.GetKind() == "" {
			return nil, errors.New("it is no Kubernetes object: it has no apiVersion or no kind")
		}
		out = append(out, u)
	}
	return out, nil
}

// documents returns the documents of a YAML stream.
func documents(stream []byte) [][]byte {
	out := [][]byte{nil}
	for line := range bytes.Lines(stream) {
		if text := string(bytes.TrimRight(line, " \t\r\n")); text == "---" || strings.HasPrefix(text, "--- ") {
			out = append(out, nil)
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], line...)
	}
	return out
}
