// Package images names Storeplane's own images: those that claims and Jobs run besides their
// owners'. A release has a digest for each, so that one name means the same program on every node,
// a new release rolls out what has changed in it, and an older release that is installed again
// restores its programs.
package images

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
)

// Digests are those of the images of a release, by the images' names without a registry, for
// example postgresql:17.
type Digests map[string]string

// Release is the file images.json of a release.
type Release struct {
	// Version of the release. Each of its images has a tag that ends with it, for example
	// postgresql:17-v0.1.0: registries do not garbage-collect an image that has a tag.
	Version string `json:"version"`

	Digests Digests `json:"digests"`
}

// Set is a set of images: of one release, in one registry.
type Set struct {
	// Registry and path that the images are below, for example
	// registry.example.com/storeplane.
	Registry string

	// Digests of the images. An image without one is pulled by its tag.
	Digests Digests

	// Version of the release, or "" for images of none.
	Version string
}

// Image returns an image as a pod pulls it, by its name without a registry.
func (s Set) Image(name string) string {
	image := s.Registry + "/" + name
	if digest := s.Digests[name]; digest != "" {
		return image + "@" + digest
	}
	return image
}

// Backup returns the name of the image backup with a tag, without a registry.
func Backup(tag string) string { return "backup:" + tag }

// Tagged returns the name of an image that is unique to the release.
func (r Release) Tagged(name string) string { return name + "-" + r.Version }

// Patterns of the names and digests in the file of a release.
var (
	validName   = regexp.MustCompile(`^[a-z0-9]+([._/-][a-z0-9]+)*:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	validDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// Read reads a release from its file images.json. Without a path there is no release, and images
// are pulled by their tags. A name or digest that cannot be pulled is an error.
func Read(path string) (Release, error) {
	if path == "" {
		return Release{}, nil
	}
	b, err := os.ReadFile(path) //nolint:gosec // The path is a flag's.
	if err != nil {
		return Release{}, fmt.Errorf("cannot read the images of the release: %w", err)
	}
	r := Release{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Release{}, fmt.Errorf("cannot read the images of the release from %s: %w", path, err)
	}
	for name, digest := range r.Digests {
		if !validName.MatchString(name) || !validDigest.MatchString(digest) {
			return Release{}, fmt.Errorf("cannot use the images of the release: %s has %q: %q, where a name with a tag and a digest like sha256:… is expected", path, name, digest)
		}
	}
	return r, nil
}
