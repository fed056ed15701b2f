package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/storeplane/storeplane/internal/images"
)

// testFolder writes the folder of a release from the texts of this tree, with random images and
// packages. A script that uses crane replaces the command crossplane.
func testFolder(t *testing.T) (dir string, b *builder) {
	t.Helper()
	at, digests := filled(t, own()...)
	// The tag of a minor version is another name of the same image.
	if err := crane.Tag(at+"/postgresql:17", "17.11"); err != nil {
		t.Fatal(err)
	}
	digests["postgresql:17.11"] = digests["postgresql:17"]
	b = &builder{release: testRelease(t), images: at, digests: digests, out: t.TempDir(), releases: t.TempDir()}
	b.crossplane = filepath.Join(b.out, "crossplane")
	program(t, b.crossplane, "#!/bin/sh\n# xpkg push -f FILE IMAGE\nexec "+tool(t, "crane")+" push \"$4\" \"$5\"\n")
	local, stop, err := serveRegistry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	b.local = local
	for _, repository := range packages {
		img, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := crane.Save(img, "localhost/package:latest", b.path(packageFile(repository))); err != nil {
			t.Fatal(err)
		}
		if err := b.seal(t.Context(), repository); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(b.imagesOf())
	if err != nil {
		t.Fatal(err)
	}
	write(t, b.path(imagesFile), string(list))
	t.Chdir(repository)
	if err := b.folder(t.Context()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(b.releases, "v9.8.7"), b
}

// program writes an executable script that replaces another program.
func program(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFolder(t *testing.T) {
	dir, b := testFolder(t)
	t.Run("Files", func(t *testing.T) {
		for _, name := range []string{
			"README.md", "check.sh", "load.sh", "install.yaml", "prerequisites.yaml", "uninstall.yaml", "version", "images.json", "settings.example.yaml", "verification.yaml", "trust-root-patch.yaml",
			"manifests/kustomization.yaml", "manifests/packages.yaml", "mirror/kustomization.yaml", "storeplane-9.8.7.tgz",
			"packages/function-storeplane.xpkg", "packages/provider-storeplane.xpkg", "packages/storeplane.xpkg",
			"images/function-storeplane/v9.8.7.tar", "images/storeplane/v9.8.7.tar", "images/backup/postgresql-17-v9.8.7.tar", "images/redis/8-v9.8.7.tar",
			"definitions/webapp.yaml", "definitions/backup.example.com_backups.yaml", "definitions/compositions/webapp.yaml",
			"sboms/redis-8.cdx.json", "sboms/function-storeplane-v9.8.7.cdx.json", "monitoring/prometheusrule-platform.yaml", "gitops/argocd-cm.yaml", "gitops/health-checks.yaml",
		} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("Checksums", func(t *testing.T) { checkSums(t, dir) })
	t.Run("Names", func(t *testing.T) { checkNames(t, dir) })
	t.Run("Packages", func(t *testing.T) { checkPackages(t, dir, b) })
	t.Run("Archives", func(t *testing.T) { checkArchives(t, dir, b) })
	t.Run("Load", func(t *testing.T) { checkLoad(t, dir, b) })
}

// checkSums checks that the checksums list all files except for the list itself, and are right.
func checkSums(t *testing.T, dir string) {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		listed[name] = sum
	}
	found := map[string]string{}
	walkFiles(t, dir, func(name string, data []byte) {
		sum := sha256.Sum256(data)
		found[name] = hex.EncodeToString(sum[:])
	})
	delete(found, checksums)
	if diff := cmp.Diff(found, listed); diff != "" {
		t.Errorf("-files, +%s:\n%s", checksums, diff)
	}
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--quiet", checksums)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum --check: %v: %s", err, out)
	}
}

func walkFiles(t *testing.T, dir string, do func(name string, data []byte)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		do(name, data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// replaced matches the placeholders that no file of a release contains.
var replaced = regexp.MustCompile(`\b(REGISTRY|MIRROR|VERSION|CONFIGURATION|FUNCTION|PROVIDER|[A-Z]+_DIGEST|CHART_VERSION|KUBERNETES_VERSION|CROSSPLANE_VERSION|TESTED_KUBERNETES|TESTED_CROSSPLANE)\b|v0\.0\.0|registry\.example\.com/storeplane/`)

// checkNames checks that all placeholders are replaced, and that scripts are executable and can
// be parsed.
func checkNames(t *testing.T, dir string) {
	t.Helper()
	walkFiles(t, dir, func(name string, data []byte) {
		switch filepath.Ext(name) {
		case ".tar", ".tgz", ".xpkg":
			return
		case ".sh":
			if out, err := exec.CommandContext(t.Context(), "bash", "-n", filepath.Join(dir, name)).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", name, err, out)
			}
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm()&0o100 == 0 {
				t.Errorf("%s cannot be run: %v, %v", name, info, err)
			}
		}
		for lines, n := bufio.NewScanner(bytes.NewReader(data)), 1; lines.Scan(); n++ {
			if found := replaced.FindString(lines.Text()); found != "" {
				t.Errorf("%s:%d: want %s replaced: %s", name, n, found, lines.Text())
			}
		}
	})
}

// archived returns the image in an archive, and its entry in the archive's index.
func archived(t *testing.T, file string) (v1.Image, v1.Descriptor) {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", file, err, out)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("%s: skopeo reads an archive of one image: got %v, %v", file, list, err)
	}
	img, err := index.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img, list.Manifests[0]
}

// checkArchives checks that the folder has an archive of each image of images.json, and that it
// can be read under the right names.
func checkArchives(t *testing.T, dir string, b *builder) {
	t.Helper()
	all, err := images.Read(filepath.Join(dir, imagesFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.digests, all.Digests); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", imagesFile, diff)
	}
	found := map[string]v1.Descriptor{}
	files, err := filepath.Glob(filepath.Join(dir, "images/*/*.tar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		img, desc := archived(t, f)
		digest, err := img.Digest()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := img.Layers()
		if err != nil || len(layers) == 0 {
			t.Fatalf("%s: %d layers, %v", f, len(layers), err)
		}
		if _, err := layers[0].Uncompressed(); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		repository := filepath.Base(filepath.Dir(f))
		if tag := strings.TrimSuffix(filepath.Base(f), ".tar"); desc.Annotations[refName] != tag {
			t.Errorf("%s: want the tag %s, got %v", f, tag, desc.Annotations)
		}
		found[repository+"@"+digest.String()] = desc
	}
	for name, digest := range all.Digests {
		repository, _, _ := strings.Cut(name, ":")
		desc, ok := found[repository+"@"+digest]
		if want := b.release.registry + "/" + repository + "@" + digest; !ok || desc.Annotations[containerdName] != want {
			t.Errorf("%s: want an archive that containerd imports as %s, got %v", name, want, desc.Annotations)
		}
	}
	// There is one archive for the two names of one image, and one for each package.
	if want := len(all.Digests) - 1 + len(packages); len(files) != want {
		t.Errorf("want %d archives, got %d: %v", want, len(files), files)
	}
}

// checkPackages checks that what is installed names each package by the digest that its archive has.
func checkPackages(t *testing.T, dir string, b *builder) {
	t.Helper()
	installed, err := os.ReadFile(filepath.Join(dir, installManifest))
	if err != nil {
		t.Fatal(err)
	}
	for _, repository := range packages {
		_, desc := archived(t, filepath.Join(dir, "images", repository, "v9.8.7.tar"))
		if want := fmt.Sprintf("package: %s/%s@%s", b.release.registry, repository, desc.Digest); !containsLine(string(installed), want) {
			t.Errorf("want a line that ends with %q", want)
		}
		if want := b.release.registry + "/" + repository + "@" + desc.Digest.String(); desc.Annotations[containerdName] != want {
			t.Errorf("want an archive that containerd imports as %s, got %v", want, desc.Annotations)
		}
	}
}

// checkLoad checks that load.sh pushes what pods and Crossplane pull, and the signatures, and
// that it rejects a damaged archive and a registry without a path.
func checkLoad(t *testing.T, dir string, b *builder) {
	t.Helper()
	// make sign writes a signature under its own tag, beside that of the image.
	const signature = "sha256-0.sig"
	if err := archive(t.Context(), b.images+"/redis:8", "redis", signature, filepath.Join(dir, "signatures/redis", signature+".tar")); err != nil {
		t.Fatal(err)
	}
	if err := sum(dir); err != nil {
		t.Fatal(err)
	}
	to, _ := filled(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "load.sh"), to+"/")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("load.sh: %v: %s", err, out)
	}
	for _, name := range slices.Sorted(maps.Keys(b.digests)) {
		if _, err := crane.Manifest(images.Set{Registry: to, Digests: b.digests}.Image(name)); err != nil {
			t.Errorf("%s cannot be pulled as it is pinned: %v", name, err)
		}
	}
	for _, repository := range packages {
		_, desc := archived(t, filepath.Join(dir, "images", repository, "v9.8.7.tar"))
		if got, err := crane.Digest(to + "/" + repository + ":v9.8.7"); err != nil || got != desc.Digest.String() {
			t.Errorf("%s: want %s, got %s, %v", repository, desc.Digest, got, err)
		}
	}
	if got, err := crane.Digest(to + "/redis:" + signature); err != nil || got != b.digests["redis:8"] {
		t.Errorf("signatures are loaded too: got %s, %v", got, err)
	}

	write(t, filepath.Join(dir, "images/redis/8-v9.8.7.tar"), "cut off")
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "load.sh"), to).CombinedOutput()
	if want := "load: an image or a signature is not the one of this release: copy the folder again"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("An archive that is not whole is not pushed: want %q, got %v: %s", want, err, out)
	}
	out, err = exec.CommandContext(t.Context(), filepath.Join(dir, "load.sh"), "registry.company.com").CombinedOutput()
	if want := "load: name a registry and a path: ./load.sh registry.company.com/storeplane"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("A registry alone has no place for packages: want %q, got %v: %s", want, err, out)
	}
}

// TestArchiveIndex: the archive of an image for several architectures contains all of them, with
// the digest of the index.
func TestArchiveIndex(t *testing.T) {
	at, _ := filled(t)
	one, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	if err := pushIndex(at+"/redis:8", index); err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "8.tar")
	if err := archive(t.Context(), at+"/redis:8", "registry.example.com/redis", "8", file); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := l.ImageIndex(want)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := one.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Image(digest); err != nil {
		t.Errorf("an architecture is missing: %v", err)
	}
}

// TestCheck: check.sh reports whether a cluster can run the release. A script replaces kubectl.
func TestCheck(t *testing.T) {
	needs := requirements{kubernetes: "1.30", crossplane: "2.2"}
	source, err := os.ReadFile("../../package/release/check.sh")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "check.sh")
	write(t, script, string(testRelease(t).inText(needs, source)))
	cases := map[string]struct {
		reason, kubernetes, crossplane, want string
		fails                                bool
	}{
		"New":           {reason: "Vendors add to versions.", kubernetes: "v1.36.3-eks-1", crossplane: "2.10.0", want: "check: Kubernetes v1.36.3-eks-1 and Crossplane 2.10.0 can run Storeplane v9.8.7"},
		"Oldest":        {reason: "The oldest that are needed will do.", kubernetes: "v1.30.0", crossplane: "2.2.0-rc.1", want: "can run"},
		"OldKubernetes": {reason: "Versions are numbers, not texts.", kubernetes: "v1.9.0", crossplane: "2.4.0", want: "check: Kubernetes is v1.9.0, and Storeplane v9.8.7 needs 1.30 or later: upgrade the cluster", fails: true},
		"OldCrossplane": {reason: "Crossplane would refuse the packages later.", kubernetes: "v1.36.3", crossplane: "v1.20.1", want: "check: Crossplane is v1.20.1, and Storeplane v9.8.7 needs 2.2 or later: upgrade Crossplane", fails: true},
		"NoCrossplane":  {reason: "Without Crossplane nothing can be installed.", kubernetes: "v1.36.3", want: "check: Crossplane is not installed: install 2.2 or later with its Helm chart", fails: true},
		"OwnCrossplane": {reason: "Crossplane can be installed without its chart.", kubernetes: "v1.36.3", crossplane: "-", want: "check: no Deployment has Crossplane's version as a label: make sure that it is 2.2 or later"},
		"NoCluster":     {reason: "kubectl has said why.", want: "check: no cluster answers: set KUBECONFIG", fails: true},
		"Unknown":       {reason: "What cannot be compared is not taken for new.", kubernetes: "main", want: `the cluster reports the version "main", which cannot be compared with 1.30`, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			program(t, filepath.Join(bin, "kubectl"), fmt.Sprintf(`#!/bin/sh
kubernetes=%q crossplane=%q
case "$*" in
"get --raw /version") [ -n "$kubernetes" ] && echo "{
  \"gitVersion\": \"$kubernetes\"
}" ;;
"get crd/"*) [ -n "$crossplane" ] ;;
"get deployments"*) [ "$crossplane" = - ] || printf '%%s\n%%s\n' "$crossplane" "$crossplane" ;;
esac
`, tc.kubernetes, tc.crossplane))
			cmd := exec.CommandContext(t.Context(), "bash", script)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if (err != nil) != tc.fails || !strings.Contains(string(out), tc.want) {
				t.Errorf("%s\nwant %q, got %v: %s", tc.reason, tc.want, err, out)
			}
		})
	}
}

func pushIndex(to string, index v1.ImageIndex) error {
	ref, err := name.ParseReference(to)
	if err != nil {
		return err
	}
	return remote.WriteIndex(ref, index)
}
