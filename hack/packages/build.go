package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/crane"

	"github.com/storeplane/storeplane/internal/images"
)

// builder builds one release.
type builder struct {
	release    release
	crossplane string
	out        string

	// releases is the folder below which a release is written, in a folder named after its version.
	releases string

	// images is the registry with the images that claims run.
	images  string
	digests images.Digests

	// local is the registry of this process, which has each package as it was built.
	local string
}

// The files in the folder that is written.
const (
	installManifest   = "install.yaml"
	prerequisites     = "prerequisites.yaml"
	uninstallManifest = "uninstall.yaml"
	versionFile       = "version"
	checkScript       = "check.sh"
)

func (b *builder) path(elem ...string) string {
	return filepath.Join(append([]string{b.out}, elem...)...)
}

// The repositories of the packages.
const (
	functionRepository      = "function-storeplane"
	providerRepository      = "provider-storeplane"
	configurationRepository = "storeplane"
)

var packages = []string{configurationRepository, functionRepository, providerRepository}

// packageFile returns the name of a package's file.
func packageFile(repository string) string { return repository + ".xpkg" }

// runtimes are the packages that contain the image of a program, by the program's name.
var runtimes = []struct{ name, repository string }{
	{name: "function", repository: functionRepository},
	{name: "provider", repository: providerRepository},
}

func (b *builder) build(ctx context.Context) error {
	if err := b.pin(ctx); err != nil {
		return err
	}
	for _, r := range runtimes {
		if err := b.binary(ctx, r.name); err != nil {
			return err
		}
	}
	if b.release.version == devVersion {
		if err := b.nameVersion(); err != nil {
			return err
		}
	}
	if err := b.list(); err != nil {
		return err
	}
	if err := b.stage(); err != nil {
		return err
	}
	for _, r := range runtimes {
		if err := b.runtimePackage(ctx, r.name, r.repository); err != nil {
			return err
		}
	}
	if err := b.configuration(ctx); err != nil {
		return err
	}
	return b.manifests()
}

// configuration builds the package that depends on the others, by their digests.
func (b *builder) configuration(ctx context.Context) error {
	files, err := configurationFiles()
	if err != nil {
		return err
	}
	if err := b.stageFiles("configuration", ".", files); err != nil {
		return err
	}
	if err := run(ctx, b.crossplane, "xpkg", "build", "-f", b.path("configuration"), "-o", b.path(packageFile(configurationRepository))); err != nil {
		return err
	}
	return b.seal(ctx, configurationRepository)
}

// seal pushes a package to the registry of this process and notes its digest, which is the same
// in every registry that it is copied to.
func (b *builder) seal(ctx context.Context, repository string) error {
	at := b.local + "/" + repository + ":" + b.release.version
	if err := run(ctx, b.crossplane, "xpkg", "push", "-f", b.path(packageFile(repository)), at); err != nil {
		return err
	}
	digest, err := crane.Digest(at, crane.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("cannot read the digest of package %s: %w", repository, err)
	}
	if b.release.packages == nil {
		b.release.packages = map[string]string{}
	}
	b.release.packages[repository] = digest
	return nil
}

// runtimePackage builds a package with the image of a program embedded in it.
func (b *builder) runtimePackage(ctx context.Context, name, repository string) error {
	tar := b.path(name + ".tar")
	if err := run(ctx, "go", "run", "./test/cluster", "image",
		"--file", "package/images/"+name+"/Dockerfile", "--context", b.image(name), "--base", "scratch",
		"--build-arg", "REGISTRY="+b.release.registry, "--tag", "localhost/storeplane-"+name+":latest", "--tar", tar); err != nil {
		return err
	}
	if err := run(ctx, b.crossplane, "xpkg", "build", "-f", b.path(name), "-o", b.path(packageFile(repository)), "--embed-runtime-image-tarball", tar); err != nil {
		return err
	}
	return b.seal(ctx, repository)
}

// image returns the folder from which a program's image is built.
func (b *builder) image(name string) string { return b.path(name + "-image") }

// binary builds a program. The result is the same for the same sources, so that an unchanged
// package keeps its version.
func (b *builder) binary(ctx context.Context, name string) error {
	if err := os.MkdirAll(b.image(name), 0o755); err != nil {
		return err
	}
	cmd := command(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(b.image(name), name), "./cmd/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build the %s: %w", name, err)
	}
	return nil
}

// nameVersion derives the version from all that the packages contain.
func (b *builder) nameVersion() error {
	h := sha256.New()
	files, err := configurationFiles()
	if err != nil {
		return err
	}
	for _, r := range runtimes {
		files = append(files, filepath.Join(b.image(r.name), r.name), "package/images/"+r.name+"/Dockerfile")
		sources, err := packageFiles(r.name)
		if err != nil {
			return err
		}
		files = append(files, sources...)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s %d %s\n", f, len(data), b.release.registry)
		_, _ = h.Write(data)
	}
	for _, name := range slices.Sorted(maps.Keys(b.digests)) {
		_, _ = fmt.Fprintf(h, "%s %s\n", name, b.digests[name])
	}
	b.release.version = "v0.1.0-dev.g" + hex.EncodeToString(h.Sum(nil))[:12]
	return nil
}

// configurationFiles returns the sources of the Configuration package.
func configurationFiles() ([]string, error) {
	return sources("crossplane.yaml", "apis/*/definition.yaml", "compositions/*.yaml")
}

// packageFiles returns the sources of a program's package, except for the program.
func packageFiles(name string) ([]string, error) {
	if name == "provider" {
		return sources("package/provider/crossplane.yaml", "package/provider/crds/*.yaml")
	}
	return sources("package/" + name + "/crossplane.yaml")
}

func sources(patterns ...string) ([]string, error) {
	var files []string
	for _, pattern := range patterns {
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

// stage writes the folders from which the packages of the programs are built.
func (b *builder) stage() error {
	for _, r := range runtimes {
		files, err := packageFiles(r.name)
		if err != nil {
			return err
		}
		if err := b.stageFiles(r.name, filepath.Join("package", r.name), files); err != nil {
			return err
		}
	}
	return nil
}

// stageFiles copies files into a folder of their own, under their paths below base.
func (b *builder) stageFiles(folder, base string, files []string) error {
	if err := os.RemoveAll(b.path(folder)); err != nil {
		return err
	}
	for _, f := range files {
		rel, err := filepath.Rel(base, f)
		if err != nil {
			return err
		}
		if err := b.copyReleased(f, b.path(folder, rel)); err != nil {
			return err
		}
	}
	return nil
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

// manifests writes the manifests to apply with kubectl: everything, or only the prerequisites for
// `crossplane xpkg install`. It also writes the manifest to uninstall with, and the script that
// checks the cluster first.
func (b *builder) manifests() error {
	files, err := b.release.manifests(os.DirFS("package/install"))
	if err != nil {
		return err
	}
	needs, err := readRequirements()
	if err != nil {
		return err
	}
	check, err := os.ReadFile(filepath.Join(releaseFolder, checkScript))
	if err != nil {
		return err
	}
	files[checkScript] = b.release.inText(needs, check)
	files[versionFile] = []byte(b.release.version + "\n")
	for name, data := range files {
		if err := writeFile(b.path(name), data); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) push(ctx context.Context) error {
	if err := b.pushImages(ctx); err != nil {
		return err
	}
	for _, repository := range packages {
		name := "/" + repository + ":" + b.release.version
		if err := crane.Copy(b.local+name, b.release.registry+name, crane.WithContext(ctx)); err != nil {
			return fmt.Errorf("cannot push package %s: %w", b.release.registry+name, err)
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

// command returns a command that prints to standard error: standard output is for results.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd
}
