package main

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// mediaType is the media type of the file.
const mediaType types.MediaType = "application/vnd.cyclonedx+json"

// attach attaches a file to an image, as the OCI distribution specification defines it
// (https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md#listing-referrers).
func attach(ctx context.Context, to name.Reference, img v1.Image, file []byte) error {
	subject, err := partial.Descriptor(img)
	if err != nil {
		return err
	}
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mediaType)
	if artifact, err = mutate.AppendLayers(artifact, static.NewLayer(file, mediaType)); err != nil {
		return err
	}
	attached, ok := mutate.Subject(artifact, *subject).(v1.Image)
	if !ok {
		panic("mutate.Subject makes an image of an image")
	}
	digest, err := attached.Digest()
	if err != nil {
		return err
	}
	return remote.Write(to.Context().Digest(digest.String()), attached, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}
