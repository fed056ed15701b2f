package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// builder writes one release.
type builder struct {
	release    release
	crossplane string
	out        string
}

// Files of the folder that is written.
const (
	functionPackage      = "function-storeplane.xpkg"
	configurationPackage = "storeplane.xpkg"
	installManifest      = "install.yaml"
	prerequisites        = "prerequisites.yaml"
	versionFile          = "version"
)

func (b *builder) path(elem ...string) string {
	return filepath.Join(append([]string{b.out}, elem...)...)
}

func (b *builder) build(ctx context.Context) error {
	if err := os.MkdirAll(b.path("image"), 0o755); err != nil {
		return err
	}
	if err := b.functionBinary(ctx); err != nil {
		return err
	}
	if b.release.version == devVersion {
		if err := b.nameVersion(); err != nil {
			return err
		}
	}
	if err := b.stage(); err != nil {
		return err
	}
	tar := b.path("function.tar")
	if err := run(ctx, "go", "run", "./test/cluster", "image",
		"--file", "package/images/function/Dockerfile", "--context", b.path("image"), "--base", "scratch",
		"--build-arg", "REGISTRY="+b.release.registry, "--tag", "localhost/storeplane-function:latest", "--tar", tar); err != nil {
		return err
	}
	if err := run(ctx, b.crossplane, "xpkg", "build", "-f", b.path("function"), "-o", b.path(functionPackage), "--embed-runtime-image-tarball", tar); err != nil {
		return err
	}
	if err := run(ctx, b.crossplane, "xpkg", "build", "-f", b.path("configuration"), "-o", b.path(configurationPackage)); err != nil {
		return err
	}
	return b.manifests()
}

// functionBinary is the same for the same sources, so that a package that has
// not changed keeps its version.
func (b *builder) functionBinary(ctx context.Context) error {
	cmd := command(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", b.path("image", "function"), "./cmd/function")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build the function: %w", err)
	}
	return nil
}

// nameVersion makes a version of all that goes into the packages.
func (b *builder) nameVersion() error {
	h := sha256.New()
	files := []string{b.path("image", "function"), "package/images/function/Dockerfile", "package/function/crossplane.yaml"}
	conf, err := configurationFiles()
	if err != nil {
		return err
	}
	for _, f := range append(files, conf...) {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %d %s\n", f, len(data), b.release.registry)
		_, _ = h.Write(data)
	}
	b.release.version = "v0.1.0-dev.g" + hex.EncodeToString(h.Sum(nil))[:12]
	return nil
}

// configurationFiles are the sources of the Configuration package.
func configurationFiles() ([]string, error) {
	files := []string{"crossplane.yaml"}
	for _, pattern := range []string{"apis/*/definition.yaml", "compositions/*.yaml"} {
		m, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		if len(m) == 0 {
			return nil, fmt.Errorf("cannot find %s: run this at the root of the repository, after make generate", pattern)
		}
		files = append(files, m...)
	}
	return files, nil
}

// stage writes the folders that become the packages.
func (b *builder) stage() error {
	conf, err := configurationFiles()
	if err != nil {
		return err
	}
	for _, dir := range []string{"configuration", "function"} {
		if err := os.RemoveAll(b.path(dir)); err != nil {
			return err
		}
	}
	for _, f := range conf {
		if err := b.copyReleased(f, b.path("configuration", f)); err != nil {
			return err
		}
	}
	return b.copyReleased("package/function/crossplane.yaml", b.path("function", "crossplane.yaml"))
}

func (b *builder) copyReleased(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b.release.inPackage(data), 0o644)
}

// manifests writes what is applied with kubectl: all at once, or the
// prerequisites alone before `crossplane xpkg install`.
func (b *builder) manifests() error {
	files, err := fs.Glob(os.DirFS("package/install"), "*.yaml")
	if err != nil {
		return err
	}
	var before, all [][]byte
	slices.Sort(files)
	for _, f := range files {
		if strings.HasSuffix(f, ".example.yaml") {
			continue
		}
		data, err := os.ReadFile(filepath.Join("package/install", f))
		if err != nil {
			return err
		}
		data = b.release.inManifest(data)
		if f != "packages.yaml" {
			before = append(before, data)
		}
		all = append(all, data)
	}
	for name, docs := range map[string][][]byte{prerequisites: before, installManifest: all} {
		if err := os.WriteFile(b.path(name), bytes.Join(docs, []byte("---\n")), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(b.path(versionFile), []byte(b.release.version+"\n"), 0o644)
}

func (b *builder) push(ctx context.Context) error {
	for file, repo := range map[string]string{functionPackage: "function-storeplane", configurationPackage: "storeplane"} {
		ref := fmt.Sprintf("%s/%s:%s", b.release.registry, repo, b.release.version)
		if err := run(ctx, b.crossplane, "xpkg", "push", "-f", b.path(file), ref); err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, name string, args ...string) error {
	if err := command(ctx, name, args...).Run(); err != nil {
		return fmt.Errorf("cannot run %s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return nil
}

// command prints to standard error: standard output is for results.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}
