package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// packagesFile of package/install is applied last: the runtime configuration and the permissions of
// a package must exist before it is installed.
const packagesFile = "packages.yaml"

// keep is the annotation of objects that stay when Storeplane is uninstalled, and kept its value.
const keep, kept = "helm.sh/resource-policy", "keep"

// manifests returns the manifests of a release by name, from the files of package/install.
func (r release) manifests(dir fs.FS) (map[string][]byte, error) {
	files, err := r.installed(dir)
	if err != nil {
		return nil, err
	}
	before, remove := [][]byte{}, [][]byte{}
	for _, f := range slices.Sorted(maps.Keys(files)) {
		if f == packagesFile {
			continue
		}
		before = append(before, files[f])
		removed, err := removable(files[f])
		if err != nil {
			return nil, fmt.Errorf("cannot uninstall %s: %w", f, err)
		}
		remove = append(remove, removed...)
	}
	all := before
	if packages, ok := files[packagesFile]; ok {
		all = append(slices.Clone(before), packages)
	}
	return map[string][]byte{
		prerequisites:     bytes.Join(before, separator),
		installManifest:   bytes.Join(all, separator),
		uninstallManifest: bytes.Join(remove, separator),
	}, nil
}

// installed returns the files of package/install that a release applies, by name.
func (r release) installed(dir fs.FS) (map[string][]byte, error) {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list what is installed: %w", err)
	}
	out := map[string][]byte{}
	for _, f := range names {
		if strings.HasSuffix(f, ".example.yaml") {
			continue
		}
		data, err := fs.ReadFile(dir, f)
		if err != nil {
			return nil, fmt.Errorf("cannot read what is installed: %w", err)
		}
		if bytes.Contains(data, []byte("{{")) {
			return nil, fmt.Errorf("cannot install %s: the chart would take its {{ for Helm's: write it otherwise", f)
		}
		out[f] = append(bytes.TrimRight(r.inManifest(data), "\n"), '\n')
		if err := installable(out[f]); err != nil {
			return nil, fmt.Errorf("cannot install %s: %w", f, err)
		}
	}
	return out, nil
}

// separator separates documents.
var separator = []byte("---\n")

// removable returns the documents of a manifest that are deleted when Storeplane is uninstalled.
func removable(manifest []byte) ([][]byte, error) {
	var out [][]byte
	for doc := range bytes.SplitSeq(manifest, append([]byte("\n"), separator...)) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			return nil, err
		}
		if u.GetAnnotations()[keep] != kept {
			out = append(out, append(bytes.TrimRight(doc, "\n"), '\n'))
		}
	}
	return out, nil
}

// installable returns an error if a manifest contains a kind that a cluster with Crossplane may not
// serve: kubectl fails on such a kind.
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

// kustomizable returns the files with a kustomization.yaml that lists the prerequisites. The
// packages are in the folder and not in that list: a mirror does not change their names.
func kustomizable(installed map[string][]byte) map[string][]byte {
	out := maps.Clone(installed)
	list := []byte("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, name := range slices.Sorted(maps.Keys(installed)) {
		if name != packagesFile {
			list = fmt.Appendf(list, "  - %s\n", name)
		}
	}
	out["kustomization.yaml"] = list
	return out
}
