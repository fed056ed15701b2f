package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// imagesFile lists the images of a release by their digests. It is part of the image of both
// programs.
const imagesFile = "images.json"

// repositories are those of the images that claims and Jobs run. A release may lack those
// of experimental engines.
var (
	repositories = []string{"postgresql", "backup", "redis"}
	experimental = []string{"mysql"}
)

// known matches the names of images that claims and Jobs use. Tags of releases, of signatures and
// of images under test have other names.
var known = regexp.MustCompile(`^(postgresql:[0-9]+(\.[0-9]+)?|mysql:[0-9]+\.[0-9]+(\.[0-9]+)?|redis:[0-9]+|backup:(mysql|mongodb|postgresql-[0-9]+))$`)

// pin reads the digests of all images from the registry that has them.
func (b *builder) pin(ctx context.Context) error {
	found := images.Digests{}
	for _, repository := range slices.Concat(repositories, experimental) {
		tags, err := crane.ListTags(b.images+"/"+repository, crane.WithContext(ctx))
		if slices.Contains(experimental, repository) && isUnknown(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot list the images of %s in %s: push them there with make images, or name the registry that has them with --images (IMAGES of make): %w", repository, b.images, err)
		}
		for _, tag := range tags {
			name := repository + ":" + tag
			if !known.MatchString(name) {
				continue
			}
			if found[name], err = crane.Digest(b.images+"/"+name, crane.WithContext(ctx)); err != nil {
				return fmt.Errorf("cannot read the digest of image %s in %s: %w", name, b.images, err)
			}
		}
	}
	if err := complete(found); err != nil {
		return fmt.Errorf("cannot use the images in %s: %w", b.images, err)
	}
	b.digests = found
	return nil
}

// isUnknown reports whether a registry answers that it has no such repository.
func isUnknown(err error) bool {
	e, ok := errors.AsType[*transport.Error](err)
	return ok && e.StatusCode == http.StatusNotFound
}

// complete returns an error if an image is missing that claims run by default, or that Jobs run for
// backups.
func complete(found images.Digests) error {
	for _, name := range append(workload.Images(), "postgresql:17", "redis:8") {
		if found[name] == "" {
			return fmt.Errorf("there is no %s: make images builds all", name)
		}
	}
	return nil
}

// list writes the list of images, for people and for each program.
func (b *builder) list() error {
	data, err := json.MarshalIndent(b.imagesOf(), "", "  ")
	if err != nil {
		return err
	}
	files := []string{b.path(imagesFile)}
	for _, r := range runtimes {
		files = append(files, filepath.Join(b.image(r.name), imagesFile))
	}
	for _, f := range files {
		if err := os.WriteFile(f, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) imagesOf() images.Release {
	return images.Release{Version: b.release.version, Digests: b.digests}
}

// pushImages copies each image to the registry of the release, with a tag of this release. Only
// because of that tag does a registry keep the image once another release has taken over its other
// tag.
func (b *builder) pushImages(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(b.digests)) {
		from := images.Set{Registry: b.images, Digests: b.digests}.Image(name)
		to := b.release.registry + "/" + b.imagesOf().Tagged(name)
		if err := crane.Copy(from, to, crane.WithContext(ctx)); err != nil {
			return fmt.Errorf("cannot push image %s: %w", to, err)
		}
	}
	return nil
}
