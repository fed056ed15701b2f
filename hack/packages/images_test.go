package main

import (
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// own returns the images that a release needs.
func own() []string { return append(workload.Images(), "postgresql:17", "postgresql:17.10", "redis:8") }

// filled starts a registry with random images of these names, and returns its address and the
// digests.
func filled(t *testing.T, names ...string) (string, images.Digests) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	at, digests := strings.TrimPrefix(server.URL, "http://")+"/storeplane", images.Digests{}
	for _, name := range names {
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := crane.Push(image, at+"/"+name); err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[name] = digest.String()
	}
	return at, digests
}

func TestPin(t *testing.T) {
	without := func(name string) []string {
		return slices.DeleteFunc(own(), func(n string) bool { return n == name })
	}
	cases := map[string]struct {
		reason string
		have   []string
		skip   string
		err    string
	}{
		"All":     {reason: "Each image is known by its digest, that of a minor version too.", have: own()},
		"Older":   {reason: "The tags of releases are names of the same images.", have: append(own(), "redis:8-v0.1.0"), skip: "redis:8-v0.1.0"},
		"Others":  {reason: "So is nothing that is no image of a release.", have: append(own(), "postgresql:17-test"), skip: "postgresql:17-test"},
		"NoRedis": {reason: "A release without an image would name what no pod can pull.", have: without("redis:8"), err: "cannot list the images of redis"},
		"NoTools": {reason: "So would one whose databases could not be backed up.", have: without("backup:mysql"), err: "there is no backup:mysql: make images builds all"},
		"Nothing": {reason: "An empty registry has none.", err: "push them there with make images, or name the registry that has them with --images (IMAGES of make)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, want := filled(t, tc.have...)
			delete(want, tc.skip)
			b := &builder{images: at}
			if err := b.pin(t.Context()); tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), at) {
					t.Errorf("%s\nwant an error of %s with %q, got %v", tc.reason, at, tc.err, err)
				}
				return
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, b.digests); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPushImages: the images of a release are pushed under its own tags too, so that they can
// still be pulled by their digests once a later release has moved a tag, from the registry itself
// and from a mirror.
func TestPushImages(t *testing.T) {
	at, digests := filled(t, own()...)
	mirror, _ := filled(t)
	for _, to := range []string{at, mirror} {
		b := &builder{images: at, digests: digests, release: release{registry: to, version: "v0.2.0"}}
		if err := b.pushImages(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(digests)) {
			got, err := crane.Digest(to + "/" + name + "-v0.2.0")
			if err != nil {
				t.Fatal(err)
			}
			if got != digests[name] {
				t.Errorf("%s of %s: want %s, got %s", name, to, digests[name], got)
			}
			if _, err := crane.Manifest(images.Set{Registry: to, Digests: digests}.Image(name)); err != nil {
				t.Errorf("%s of %s cannot be pulled as it is pinned: %v", name, to, err)
			}
		}
	}
}

// TestImageList: the function's and the provider's images contain the same list of images as the
// release.
func TestImageList(t *testing.T) {
	b := &builder{out: t.TempDir(), digests: images.Digests{"redis:8": "sha256:" + strings.Repeat("ab", 32)}, release: release{version: "v0.2.0"}}
	for _, r := range runtimes {
		if err := os.MkdirAll(b.image(r.name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.list(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(b.path(imagesFile))
	if err != nil {
		t.Fatal(err)
	}
	shown := images.Release{}
	if err := json.Unmarshal(data, &shown); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(images.Release{Version: "v0.2.0", Digests: b.digests}, shown); diff != "" {
		t.Errorf("the release: -want, +got:\n%s", diff)
	}
	for _, r := range runtimes {
		got, err := images.Read(filepath.Join(b.image(r.name), imagesFile))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b.digests, got.Digests); diff != "" {
			t.Errorf("the %s: -want, +got:\n%s", r.name, diff)
		}
	}
}
