package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const status = `Package: libssl3t64
Status: install ok installed
Source: openssl (3.5.1-1)
Architecture: amd64
Version: 3.5.1-1+deb13u1
Description: Secure Sockets Layer toolkit
 Of more than one line.

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: redis
Status: install ok installed
Architecture: amd64
Version: 5:8.0.2-3
`

type file struct {
	mode int64
	data string
}

func image(t *testing.T, files map[string]file) v1.Image {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, path := range slices.Sorted(maps.Keys(files)) {
			f := files[path]
			if err := w.WriteHeader(&tar.Header{Name: path, Typeflag: tar.TypeReg, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
				return nil, err
			}
			if _, err := w.Write([]byte(f.data)); err != nil {
				return nil, err
			}
		}
		return io.NopCloser(&out), w.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// debian returns an image with Debian packages and with this test binary as its program.
func debian(t *testing.T) v1.Image {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	return image(t, map[string]file{
		dpkgStatus:              {mode: 0o644, data: status},
		osRelease:               {mode: 0o644, data: "ID=debian\nVERSION_ID=\"13\"\n"},
		"usr/local/bin/program": {mode: 0o755, data: string(program)},
		"usr/bin/other":         {mode: 0o755, data: "\x7fELF of another compiler"},
		"usr/bin/script":        {mode: 0o755, data: "#!/bin/sh\n"},
		"usr/bin/empty":         {mode: 0o755},
	})
}

func TestContents(t *testing.T) {
	found, err := contentsOf(debian(t))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	modules := map[string]bool{}
	for _, c := range found.components("v1.2.3") {
		if strings.HasPrefix(c.PackageURL, "pkg:deb/") {
			packages = append(packages, c.PackageURL)
			continue
		}
		modules[c.Name] = true
		if c.Name == ownModule && c.Version != "v1.2.3" {
			t.Errorf("Storeplane's own module is of version %s, want the release's", c.Version)
		}
	}
	want := []string{
		"pkg:deb/debian/libssl3t64@3.5.1-1%2Bdeb13u1?arch=amd64&distro=debian-13&upstream=openssl%403.5.1-1",
		"pkg:deb/debian/redis@5:8.0.2-3?arch=amd64&distro=debian-13",
	}
	if diff := cmp.Diff(want, packages); diff != "" {
		t.Errorf("What is installed is listed, and nothing that was removed: -want, +got:\n%s", diff)
	}
	for _, m := range []string{"stdlib", "github.com/google/go-containerregistry", "github.com/storeplane/storeplane"} {
		if !modules[m] {
			t.Errorf("Module %s of a program is not listed: got %v", m, modules)
		}
	}
}

func TestRemoved(t *testing.T) {
	img := debian(t)
	layer, err := image(t, map[string]file{"usr/local/bin/.wh.program": {}}).Layers()
	if err != nil {
		t.Fatal(err)
	}
	if img, err = mutate.AppendLayers(img, layer...); err != nil {
		t.Fatal(err)
	}
	found, err := contentsOf(img)
	if err != nil || len(found.modules) > 0 || len(found.packages) != 2 {
		t.Errorf("contentsOf(): a later layer has removed the program: got %v, %v", found, err)
	}
}

// TestRun: each image of a release in a registry gets a file, which is the same each time, and
// scanners find it attached to the image.
func TestRun(t *testing.T) {
	open := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "who" || password != "pushes" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		open.ServeHTTP(w, r)
	}))
	defer server.Close()
	login := t.TempDir()
	t.Setenv("DOCKER_CONFIG", login)
	auth := fmt.Sprintf(`{"auths": {%q: {"username": "who", "password": "pushes"}}}`, strings.TrimPrefix(server.URL, "http://"))
	if err := os.WriteFile(filepath.Join(login, "config.json"), []byte(auth), 0o600); err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(server.URL, "http://") + "/storeplane"
	img := debian(t)
	for _, n := range []string{"redis:8", "function-storeplane:v1.2.3", "provider-storeplane:v1.2.3"} {
		if err := crane.Push(img, at+"/"+n); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "images.json"), []byte(`{"version": "v1.2.3", "digests": {"redis:8": "`+digest.String()+`"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cli{Registry: at + "/", Packages: dir, Out: filepath.Join(dir, "sboms"), Attach: true}
	read := func() map[string]string {
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, n := range []string{"redis-8", "function-storeplane-v1.2.3", "provider-storeplane-v1.2.3"} {
			data, err := os.ReadFile(filepath.Join(c.Out, n+".cdx.json"))
			if err != nil {
				t.Fatal(err)
			}
			out[n] = string(data)
		}
		return out
	}
	first := read()
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("The same image is described in the same words: -first, +second:\n%s", diff)
	}
	bom := cdx.BOM{}
	if err := json.Unmarshal([]byte(first["redis-8"]), &bom); err != nil {
		t.Fatal(err)
	}
	if of := bom.Metadata.Component; of.Name != "redis:8" || of.Version != digest.String() || len(*bom.Components) < 3 {
		t.Errorf("redis:8 is described as %s %s with %d components", of.Name, of.Version, len(*bom.Components))
	}

	ref, err := name.NewDigest(at + "/redis@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	keys := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	index, err := remote.Referrers(ref, keys)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 || list.Manifests[0].ArtifactType != string(mediaType) {
		t.Fatalf("The file is attached once, as what it is: got %v", list.Manifests)
	}
	attached, err := remote.Image(ref.Context().Digest(list.Manifests[0].Digest.String()), keys)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := attached.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("layers: %v, %v", layers, err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || string(data) != first["redis-8"] {
		t.Errorf("What is attached is not the file: %v", err)
	}
}

// TestRelease: the files written from the archives of a release equal those written from the
// registry.
func TestRelease(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/storeplane"
	img := debian(t)
	digest, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, n := range []string{"redis:8", "function-storeplane:v1.2.3", "provider-storeplane:v1.2.3"} {
		if err := crane.Push(img, at+"/"+n); err != nil {
			t.Fatal(err)
		}
		repository, tag, _ := strings.Cut(n, ":")
		archive(t, img, filepath.Join(dir, "images", repository, tag+".tar"))
	}
	// Another name of the same image has no archive.
	file := `{"version": "v1.2.3", "digests": {"redis:8": "` + digest.String() + `", "redis:8.0": "` + digest.String() + `"}}`
	if err := os.WriteFile(filepath.Join(dir, "images.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	written := func(c cli) map[string]string {
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, n := range []string{"redis-8", "redis-8.0", "function-storeplane-v1.2.3", "provider-storeplane-v1.2.3"} {
			data, err := os.ReadFile(filepath.Join(c.Out, n+".cdx.json"))
			if err != nil {
				t.Fatal(err)
			}
			out[n] = string(data)
		}
		return out
	}
	pulled := written(cli{Registry: at, Packages: dir, Out: filepath.Join(dir, "pulled")})
	server.Close()
	read := written(cli{Registry: at, Release: dir, Out: filepath.Join(dir, "read")})
	if diff := cmp.Diff(pulled, read); diff != "" {
		t.Errorf("-of the registry, +of the archives:\n%s", diff)
	}

	if err := os.RemoveAll(filepath.Join(dir, "images", "redis")); err != nil {
		t.Fatal(err)
	}
	c := cli{Registry: at, Release: dir, Out: filepath.Join(dir, "read")}
	if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "there is none of it in images/redis: write the release again with make release") {
		t.Errorf("An image without an archive is an error, got %v", err)
	}
}

// archive writes an image to an archive as a release does.
func archive(t *testing.T, img v1.Image, path string) {
	t.Helper()
	dir := t.TempDir()
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendImage(img); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, out.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestRunRefuses(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/storeplane"
	dir := t.TempDir()
	c := cli{Registry: at, Packages: dir, Out: filepath.Join(dir, "sboms")}
	cases := []struct{ reason, file, want string }{
		{reason: "Nothing was built.", want: "run make packages first"},
		{reason: "The release is elsewhere.", file: `{"version": "v1.2.3"}`, want: "push the release with make install first"},
		{reason: "What is no JSON is not read.", file: `{`, want: "cannot read the images of the release from"},
	}
	for _, tc := range cases {
		if tc.file != "" {
			if err := os.WriteFile(filepath.Join(dir, "images.json"), []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\nRun(): want an error with %q, got %v", tc.reason, tc.want, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(c.Out, "*")); !slices.Equal(files, nil) {
		t.Errorf("Nothing is written of what cannot be read: got %v", files)
	}
}
