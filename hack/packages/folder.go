package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checksums is the file with the checksums of all other files of a release, for sha256sum --check.
const checksums = "SHA256SUMS"

// The folders of the source tree from which a release is written.
const (
	installFolder = "package/install"
	helmFolder    = "package/helm"
	releaseFolder = "package/release"
)

// folder writes a release: all files to install and review it, from the results of build and from
// the source tree. They do not need the source tree.
func (b *builder) folder(ctx context.Context) error {
	needs, err := readRequirements()
	if err != nil {
		return err
	}
	to := filepath.Join(b.releases, b.release.version)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	files, err := b.texts(needs)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := writeFile(filepath.Join(to, name), data); err != nil {
			return err
		}
	}
	for _, repository := range packages {
		file := packageFile(repository)
		if err := copyFile(b.path(file), filepath.Join(to, "packages", file)); err != nil {
			return err
		}
	}
	if err := b.archives(ctx, filepath.Join(to, "images")); err != nil {
		return err
	}
	if err := run(ctx, "go", "run", "./hack/sbom", "--registry", b.release.registry, "--release", to, "--out", filepath.Join(to, "sboms")); err != nil {
		return err
	}
	return sum(to)
}

// texts returns the text files and the chart of a release, by their names in it.
func (b *builder) texts(needs requirements) (map[string][]byte, error) {
	install := os.DirFS(installFolder)
	out, err := b.release.manifests(install)
	if err != nil {
		return nil, err
	}
	installed, err := b.release.installed(install)
	if err != nil {
		return nil, err
	}
	for name, data := range kustomizable(installed) {
		out[filepath.Join("manifests", name)] = data
	}
	chart, err := b.release.chart(needs, os.DirFS(helmFolder), install)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	if err := pack(&archive, chartName, chart); err != nil {
		return nil, err
	}
	out[b.release.chartFile()] = archive.Bytes()
	if err := b.copies(needs, out); err != nil {
		return nil, err
	}
	out[versionFile] = []byte(b.release.version + "\n")
	return out, nil
}

// copies adds copies of files of the source tree, with the names of the release.
func (b *builder) copies(needs requirements, out map[string][]byte) error {
	asManifest := func(data []byte) []byte { return b.release.inText(needs, data) }
	for _, c := range []struct {
		from, to string
		edit     func([]byte) []byte
	}{
		{from: releaseFolder + "/*", edit: asManifest},
		{from: releaseFolder + "/mirror/*", to: "mirror", edit: asManifest},
		{from: installFolder + "/settings.example.yaml", edit: b.release.inPackage},
		{from: "apis/*/definition.yaml", to: "definitions", edit: b.release.inPackage},
		{from: "compositions/*.yaml", to: "definitions/compositions", edit: b.release.inPackage},
		{from: "package/provider/crds/*.yaml", to: "definitions", edit: b.release.inPackage},
		{from: "package/monitoring/*.yaml", to: "monitoring", edit: bytes.Clone},
		{from: "package/monitoring/*.json", to: "monitoring", edit: bytes.Clone},
		{from: "package/gitops/argocd/argocd-cm.yaml", to: "gitops", edit: bytes.Clone},
		{from: "package/gitops/flux/health-checks.yaml", to: "gitops", edit: bytes.Clone},
		{from: b.path(imagesFile), edit: bytes.Clone},
	} {
		found, err := sources(c.from)
		if err != nil {
			return err
		}
		for _, f := range found {
			info, err := os.Stat(f)
			if err != nil {
				return err
			}
			if info.IsDir() {
				continue
			}
			data, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			name := filepath.Base(f)
			if name == "definition.yaml" {
				// Each definition is in the folder of its kind.
				name = filepath.Base(filepath.Dir(f)) + ".yaml"
			}
			out[filepath.Join(c.to, name)] = c.edit(data)
		}
	}
	return nil
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasSuffix(path, ".sh") {
		mode = 0o755
	}
	return os.WriteFile(path, data, mode)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return writeFile(to, data)
}

// sum writes the checksums of a folder's files.
func sum(dir string) error {
	var out []byte
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || name == checksums {
			return err
		}
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		out = fmt.Appendf(out, "%s  %s\n", hex.EncodeToString(h.Sum(nil)), name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot write the checksums of %s: %w", dir, err)
	}
	return writeFile(filepath.Join(dir, checksums), out)
}
