package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/google/go-containerregistry/pkg/crane"

	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// imagesFile lists the images of a release by their digests. Both programs have it in
// their own image.
const imagesFile = "images.json"

// repositories of the images that claims and Jobs run.
var repositories = []string{"postgresql", "backup", "redis"}

// known are the names that claims and Jobs ask for. Tags of releases, signatures and
// images under test have other ones.
var known = regexp.MustCompile(`^(postgresql:[0-9]+(\.[0-9]+)?|redis:[0-9]+|backup:(mysql|mongodb|postgresql-[0-9]+))$`)

// pin reads the digests of all images from the registry that has them.
func (b *builder) pin(ctx context.Context) error {
	found := images.Digests{}
	for _, repository := range repositories {
		tags, err := crane.ListTags(b.images+"/"+repository, crane.WithContext(ctx))
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

// complete says whether a release has what is asked for where a claim says nothing
// else, and what backs up all that it has.
func complete(found images.Digests) error {
	for _, name := range append(workload.Images(), "postgresql:17", "redis:8") {
		if found[name] == "" {
			return fmt.Errorf("there is no %s: make images builds all", name)
		}
	}
	return nil
}

// list writes the file of the images, for people and beside each program.
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

// pushImages gives each image its tag of this release, and copies it where the release
// is installed from if it is not there. By that tag alone a registry keeps it once
// another release has taken the other one over.
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
