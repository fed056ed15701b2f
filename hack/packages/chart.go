package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// chartName is the name of the chart, and of the folder in its archive.
const chartName = "storeplane"

// optional are the files of package/install that are optional, and the chart's values that enable
// them.
var optional = map[string]string{
	"admission.yaml":     ".Values.guardrails.enabled",
	"networkpolicy.yaml": ".Values.networkPolicies.enabled",
}

// chart returns the files of the chart by name: those of package/helm, and a template of each file
// of package/install, so that Helm installs the same objects as the manifests.
func (r release) chart(needs requirements, helm, install fs.FS) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(helm, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(helm, name)
		out[name] = r.inText(needs, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the chart: %w", err)
	}
	out["Chart.yaml"] = bytes.ReplaceAll(out["Chart.yaml"], []byte("version: 0.0.0"), []byte("version: "+r.chartVersion()))
	out["Chart.yaml"] = bytes.ReplaceAll(out["Chart.yaml"], []byte("appVersion: "+treeVersion), []byte("appVersion: "+r.version))
	// The placeholder MIRROR stays, since the files are parsed as YAML and an expression of Helm is
	// none: template replaces it.
	r.mirror = "MIRROR"
	files, err := r.installed(install)
	if err != nil {
		return nil, err
	}
	for name, data := range files {
		at := path.Join("templates", name)
		if _, ok := out[at]; ok {
			return nil, fmt.Errorf("cannot write the chart: %s is in package/helm/templates and in package/install: name one of them otherwise", name)
		}
		out[at] = template(name, data)
	}
	return out, nil
}

// chartVersion returns the version as Helm writes versions.
func (r release) chartVersion() string { return strings.TrimPrefix(r.version, "v") }

// chartFile returns the name of the chart's archive.
func (r release) chartFile() string { return chartName + "-" + r.chartVersion() + ".tgz" }

// template returns a file of package/install as a template of the chart.
func template(name string, manifest []byte) []byte {
	manifest = []byte(strings.NewReplacer(
		"MIRROR", "{{ .Values.registry }}",
		"crossplane-system", "{{ .Values.crossplane.namespace }}",
		"kubernetes.io/metadata.name: monitoring", "kubernetes.io/metadata.name: {{ .Values.networkPolicies.prometheusNamespace }}",
	).Replace(string(manifest)))
	if value := optional[name]; value != "" {
		return slices.Concat([]byte("{{- if "+value+" }}\n"), manifest, []byte("{{- end }}\n"))
	}
	return manifest
}

// pack writes files as an archive of a folder, with the same bytes for the same files.
func pack(w io.Writer, folder string, files map[string][]byte) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := t.WriteHeader(&tar.Header{Name: path.Join(folder, name), Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			return err
		}
		if _, err := t.Write(files[name]); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
