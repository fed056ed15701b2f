package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// secret is the password of all keys here.
const secret = "a password"

// keys returns a folder with a key pair, as make signing-key writes it.
func keys(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv(passwordVariable, secret)
	if err := (&keyPairCmd{Out: dir}).Run(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// serve starts a registry and returns its address with a path.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/storeplane"
}

func parse(t *testing.T, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func push(t *testing.T, image string, img v1.Image) string {
	t.Helper()
	if err := remote.Write(parse(t, image), img); err != nil {
		t.Fatal(err)
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func anImage(t *testing.T) v1.Image {
	t.Helper()
	img, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// signaturesOf returns the number of signatures of an image.
func signaturesOf(t *testing.T, image, digest string) int {
	t.Helper()
	img, err := remote.Image(parse(t, image+":"+strings.Replace(digest, ":", "-", 1)+".sig"))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	return len(layers)
}

// TestImages: make sign adds one signature of its key to each image of a release in a registry,
// and writes the public key.
func TestImages(t *testing.T) {
	at, out, key := serve(t), t.TempDir(), keys(t)
	digests := map[string]string{}
	for _, image := range []string{"redis:8", "storeplane:v1.2.3", "function-storeplane:v1.2.3", "provider-storeplane:v1.2.3"} {
		digests[image] = push(t, at+"/"+image, anImage(t))
	}
	write(t, filepath.Join(out, "images.json"), fmt.Sprintf(`{"version": "v1.2.3", "digests": {"redis:8": %q, "redis:8.0": %q}}`, digests["redis:8"], digests["redis:8"]))
	c := &imagesCmd{Key: key + "/cosign.key", Registry: at + "/", Packages: out}
	for range 2 {
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other := *c
	other.Key = keys(t) + "/cosign.key"
	other.Image = []string{at + "/redis:8"}
	if err := other.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"redis:8": 2, "storeplane:v1.2.3": 1, "function-storeplane:v1.2.3": 1, "provider-storeplane:v1.2.3": 1}
	got := map[string]int{}
	for image, digest := range digests {
		repository, _, _ := strings.Cut(image, ":")
		got[image] = signaturesOf(t, at+"/"+repository, digest)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each image has one signature of each key: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(string(read(t, key+"/cosign.pub")), string(read(t, out+"/cosign.pub"))); diff != "" {
		t.Errorf("The public key is beside the packages: -want, +got:\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	at, key := serve(t), keys(t)
	release := t.TempDir()
	write(t, release+"/images.json", `{"version": "v1.2.3", "digests": {}}`)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	cases := map[string]struct {
		reason   string
		cmd      imagesCmd
		password string
		want     string
	}{
		"NoKey": {
			reason: "There is no default key.", cmd: imagesCmd{Registry: at, Packages: release}, password: secret,
			want: "COSIGN_KEY is not set: name the file of the private key, which cosign generate-key-pair or make signing-key writes",
		},
		"KeyNotFound": {
			reason: "The file is named.", cmd: imagesCmd{Key: "/none/cosign.key", Registry: at}, password: secret,
			want: "cannot read the private key: open /none/cosign.key: no such file or directory",
		},
		"Password": {
			reason: "A wrong password is no damaged key.", cmd: imagesCmd{Key: key + "/cosign.key", Registry: at}, password: "another one",
			want: "check its password in COSIGN_PASSWORD",
		},
		"PublicKey": {
			reason: "The two files are mistaken for each other.", cmd: imagesCmd{Key: key + "/cosign.pub", Registry: at}, password: secret,
			want: "that it is a key of cosign",
		},
		"NoRegistry": {
			reason: "Signatures are in some registry.", cmd: imagesCmd{Key: key + "/cosign.key"}, password: secret,
			want: "--registry is not set: name the registry that the release was pushed to",
		},
		"NoRelease": {
			reason: "Which images are signed is in the release.", cmd: imagesCmd{Key: key + "/cosign.key", Registry: at, Packages: t.TempDir()}, password: secret,
			want: "cannot read the images of the release: run make packages first",
		},
		"NotPushed": {
			reason: "What is not there has no digest.", cmd: imagesCmd{Key: key + "/cosign.key", Registry: at, Packages: release}, password: secret,
			want: "image " + at + "/function-storeplane:v1.2.3 not found: push the release with make install or its load.sh first, or name its registry with REGISTRY",
		},
		"Unreachable": {
			reason: "A registry that does not answer is no missing image.", password: secret,
			cmd:  imagesCmd{Key: key + "/cosign.key", Registry: strings.TrimPrefix(gone.URL, "http://") + "/storeplane", Packages: release},
			want: "log in to its registry, or name the one that has the release with REGISTRY",
		},
		"NoFolder": {
			reason: "Only the folder of a release is signed.", cmd: imagesCmd{Key: key + "/cosign.key", Release: t.TempDir()}, password: secret,
			want: "cannot read the release: write it with make release first",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(passwordVariable, tc.password)
			err := tc.cmd.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	t.Run("NoPassword", func(t *testing.T) {
		if err := os.Unsetenv(passwordVariable); err != nil {
			t.Fatal(err)
		}
		err := (&imagesCmd{Key: key + "/cosign.key", Registry: at}).Run(t.Context())
		if want := "COSIGN_PASSWORD is not set: set it to the password of the key in the environment"; err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	})
}

// TestKeyPair: an existing key is never replaced, and only its owner can read it.
func TestKeyPair(t *testing.T) {
	dir := keys(t)
	info, err := os.Stat(dir + "/cosign.key")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("want a private key that only its owner reads, got %v, %v", info, err)
	}
	if err := (&keyPairCmd{Out: dir}).Run(); !errors.Is(err, os.ErrExist) {
		t.Errorf("want the key to stay, got %v", err)
	}
}

// releaseFolder returns a folder of a release with one image and its checksums, as make release
// writes it.
func releaseFolder(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := t.TempDir()
	if err := writeArchive(filepath.Join(dir, "images/storeplane/v1.2.3.tar"), "v1.2.3", img); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/version", "v1.2.3\n")
	var list []byte
	for _, file := range []string{"images/storeplane/v1.2.3.tar", "version"} {
		s, err := sum(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		list = fmt.Appendf(list, "%s  %s\n", s, file)
	}
	write(t, dir+"/"+checksums, string(list))
	return dir
}

// load pushes the archives of a folder to a registry, as its load.sh does.
func load(t *testing.T, dir, to string) {
	t.Helper()
	archives, err := filepath.Glob(dir + "/*/*/*.tar")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range archives {
		work := t.TempDir()
		unpack(t, read(t, a), work)
		l, err := layout.FromPath(work)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := digestOf(a)
		if err != nil {
			t.Fatal(err)
		}
		img, err := l.Image(digest)
		if err != nil {
			t.Fatal(err)
		}
		push(t, to+"/"+filepath.Base(filepath.Dir(a))+":"+strings.TrimSuffix(filepath.Base(a), ".tar"), img)
	}
}

func unpack(t *testing.T, archive []byte, dir string) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) {
			t.Fatalf("%s is outside of the archive", h.Name)
		}
		write(t, filepath.Join(dir, h.Name), string(data)) //nolint:gosec // The path is checked to be local.
	}
}

// TestFolder: make sign RELEASE=… adds the signatures, the public key and the trust root to a
// release's folder and signs its checksums. It rejects unlisted and damaged files.
func TestFolder(t *testing.T) {
	key, img := keys(t), anImage(t)
	dir := releaseFolder(t, img)
	c := &imagesCmd{Key: key + "/cosign.key", Release: dir}
	for range 2 {
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("Files", func(t *testing.T) {
		want := []string{
			publicKeyFile, "images/storeplane/v1.2.3.tar", "signatures/storeplane/sha256-" + digest.Hex + ".sig.tar", trustRootFile, "version",
		}
		var got []string
		for line := range strings.Lines(string(read(t, dir+"/"+checksums))) {
			got = append(got, strings.TrimSpace(line[66:]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", checksums, diff)
		}
		if _, err := verified(dir); err != nil {
			t.Error(err)
		}
	})
	t.Run("Checksums", func(t *testing.T) {
		// Users can verify the checksums with openssl alone, and cosign verify-blob does the
		// same.
		openssl, err := exec.LookPath("openssl")
		if err != nil {
			t.Skip("openssl is not on the PATH")
		}
		script := `base64 -d SHA256SUMS.sig >"$1" && "$2" dgst -sha256 -verify cosign.pub -signature "$1" SHA256SUMS`
		run := func() (string, error) {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", t.TempDir()+"/sig", openssl)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := run(); err != nil {
			t.Errorf("want the checksums signed, got %v: %s", err, out)
		}
		list := read(t, dir+"/"+checksums)
		write(t, dir+"/"+checksums, string(bytes.ToUpper(list)))
		if out, err := run(); err == nil {
			t.Errorf("want changed checksums refused, got %s", out)
		}
		write(t, dir+"/"+checksums, string(list))
	})
	t.Run("Unlisted", func(t *testing.T) {
		write(t, dir+"/images/storeplane/v6.6.6.tar", string(read(t, dir+"/images/storeplane/v1.2.3.tar")))
		err := c.Run(t.Context())
		if want := "v6.6.6.tar is not listed in SHA256SUMS: write the release again with make release"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("What was put into the folder later is not signed: want %q, got %v", want, err)
		}
	})
	t.Run("Damaged", func(t *testing.T) {
		write(t, dir+"/images/storeplane/v1.2.3.tar", "cut off")
		err := c.Run(t.Context())
		if want := "images/storeplane/v1.2.3.tar is not the one of this release: write the release again with make release"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("What is not the release's own is not signed: want %q, got %v", want, err)
		}
	})
}

// TestLog: with the server of a transparency log, signatures get entries of that log, and the
// folder has no trust root for Crossplane.
func TestLog(t *testing.T) {
	server := httptest.NewServer(aLog(t, testSigner(t, keys(t))))
	defer server.Close()
	dir := releaseFolder(t, anImage(t))
	c := &imagesCmd{Key: keys(t) + "/cosign.key", Release: dir}
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.RekorURL = server.URL
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, trustRootFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want no trust root, got %v", err)
	}
	server.Close()
	err := c.Run(t.Context())
	if want := "cannot enter the signature in the transparency log"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q, got %v", want, err)
	}
}

func testSigner(t *testing.T, dir string) *signer {
	t.Helper()
	s, err := newSigner(read(t, dir+"/cosign.key"), []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trusted unpacks a trust root, as the container of trust-root-patch.yaml does in the folder that
// is Crossplane's package cache there, and returns its path.
func trusted(t *testing.T, manifest []byte) string {
	t.Helper()
	m := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(manifest, m); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack(t, m.BinaryData[trustRootKey], dir)
	return filepath.Join(dir, ".sigstore/root")
}
