package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// packagesFile of package/install comes last: how a package runs, and what it may
// do, must be known before it is installed.
const packagesFile = "packages.yaml"

// manifests of a release by their names, of the files of package/install.
func (r release) manifests(dir fs.FS) (map[string][]byte, error) {
	files, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list what is installed: %w", err)
	}
	slices.Sort(files)
	var before, packages [][]byte
	for _, f := range files {
		if strings.HasSuffix(f, ".example.yaml") {
			continue
		}
		data, err := fs.ReadFile(dir, f)
		if err != nil {
			return nil, fmt.Errorf("cannot read what is installed: %w", err)
		}
		data = append(bytes.TrimRight(r.inManifest(data), "\n"), '\n')
		if err := installable(data); err != nil {
			return nil, fmt.Errorf("cannot install %s: %w", f, err)
		}
		if f == packagesFile {
			packages = append(packages, data)
			continue
		}
		before = append(before, data)
	}
	return map[string][]byte{
		prerequisites:   bytes.Join(before, []byte("---\n")),
		installManifest: bytes.Join(slices.Concat(before, packages), []byte("---\n")),
	}, nil
}

// installable tells whether every cluster with Crossplane has the kinds of a
// manifest: kubectl fails on others.
func installable(manifest []byte) error {
	for doc := range bytes.SplitSeq(manifest, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return err
		}
		g := u.GroupVersionKind().Group
		if strings.Contains(g, ".") && !strings.HasSuffix(g, ".k8s.io") && !strings.HasSuffix(g, ".crossplane.io") {
			return fmt.Errorf("it needs the kind %s of %s, which a cluster may not have: keep it out of package/install", u.GetKind(), g)
		}
	}
	return nil
}
