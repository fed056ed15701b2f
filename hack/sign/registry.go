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
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/sigstore/cosign/v3/pkg/oci/empty"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
)

// packages are the packages of a release, by their repositories.
var packages = []string{"function-storeplane", "provider-storeplane", "storeplane"}

// released returns the references by which the images and packages of a release are pulled.
func released(registry, folder string) ([]string, error) {
	path := filepath.Join(folder, "images.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the images of the release: run make packages first: %w", err)
	}
	r := struct {
		Version string            `json:"version"`
		Digests map[string]string `json:"digests"`
	}{}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("cannot read the images of the release from %s: %w", path, err)
	}
	registry = strings.TrimSuffix(registry, "/")
	// Several tags of one image have one digest.
	found := map[string]bool{}
	for image, digest := range r.Digests {
		repository, _, _ := strings.Cut(image, ":")
		found[registry+"/"+repository+"@"+digest] = true
	}
	out := slices.Sorted(maps.Keys(found))
	for _, p := range packages {
		out = append(out, registry+"/"+p+":"+r.Version)
	}
	return out, nil
}

// images signs images in their registry.
func (s *signer) images(ctx context.Context, refs []string) error {
	// All images must exist before the first is signed.
	digests := make([]name.Digest, 0, len(refs))
	for _, r := range refs {
		d, err := resolve(ctx, r)
		if err != nil {
			return err
		}
		digests = append(digests, d)
	}
	for _, d := range digests {
		if err := s.push(ctx, d); err != nil {
			return fmt.Errorf("cannot sign image %s: %w", d, err)
		}
		fmt.Fprintln(os.Stderr, "sign:", d)
	}
	return nil
}

func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// resolve returns the digest of an image.
func resolve(ctx context.Context, image string) (name.Digest, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return name.Digest{}, fmt.Errorf("cannot use image %s: %w", image, err)
	}
	desc, err := remote.Head(ref, options(ctx)...)
	if missing(err) {
		return name.Digest{}, fmt.Errorf("image %s not found: push the release with make install or its load.sh first, or name its registry with REGISTRY", image)
	}
	if err != nil {
		return name.Digest{}, fmt.Errorf("cannot read image %s: log in to its registry, or name the one that has the release with REGISTRY: %w", image, err)
	}
	return ref.Context().Digest(desc.Digest.String()), nil
}

func missing(err error) bool {
	e := &transport.Error{}
	return errors.As(err, &e) && e.StatusCode == http.StatusNotFound
}

// push adds a signature to the tag of an image's signatures. An older one of the same key is
// replaced, and those of other keys stay.
func (s *signer) push(ctx context.Context, image name.Digest) error {
	sig, err := s.sign(ctx, image)
	if err != nil {
		return err
	}
	opts := []ociremote.Option{ociremote.WithRemoteOptions(options(ctx)...)}
	entity := ociremote.SignedUnknown(image, opts...)
	before, err := entity.Signatures()
	if err != nil {
		return err
	}
	list, err := before.Get()
	if err != nil {
		return err
	}
	tag, err := ociremote.SignatureTag(image, opts...)
	if err != nil {
		return err
	}
	all, err := mutate.AppendSignatures(empty.Signatures(), false, append(slices.DeleteFunc(list, s.own), sig)...)
	if err != nil {
		return err
	}
	return remote.Write(tag, all, options(ctx)...)
}
