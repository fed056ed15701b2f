// Command sbom writes the contents of a release: for each of its images a CycloneDX file
// (https://cyclonedx.org/specification/overview/) that lists the Debian packages and the Go modules
// in it. It reads the images from their registry, so that it lists what is pulled, or from the
// archives of a release, which keep the images' digests.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/storeplane/storeplane/internal/images"
)

type cli struct {
	Registry string `help:"Registry and path that the release was pushed to, for example registry.example.com/storeplane." required:""`
	Packages string `help:"Folder of the packages that were pushed, with images.json."                                      default:"_out/packages" type:"path"`
	Out      string `help:"Folder to write to."                                                                             default:"_out/packages/sboms"`
	Release  string `help:"Folder of a release: its archives are read instead of the registry."                            type:"existingdir"`
	version  string
	Attach   bool `help:"Attach each file to its image, as a referrer that scanners find there."`
}

// packages are those that contain a program's image.
var packages = []string{"function-storeplane", "provider-storeplane"}

// Run writes a file for each image of the release.
func (c *cli) Run(ctx context.Context) error {
	if c.Release != "" {
		c.Packages = c.Release
	}
	refs, err := c.images()
	if err != nil {
		return err
	}
	// Files of another release are not left beside the new ones.
	if err := os.RemoveAll(c.Out); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	for _, ref := range refs {
		if err := c.describe(ctx, ref); err != nil {
			return err
		}
	}
	return nil
}

// images returns the references by which the images of the release are pulled.
func (c *cli) images() ([]string, error) {
	path := filepath.Join(c.Packages, "images.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the images of the release: run make packages first: %w", err)
	}
	r := images.Release{}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("cannot read the images of the release from %s: %w", path, err)
	}
	c.version = r.Version
	registry := strings.TrimSuffix(c.Registry, "/")
	set := images.Set{Registry: registry, Digests: r.Digests}
	var out []string
	for _, n := range slices.Sorted(maps.Keys(r.Digests)) {
		out = append(out, set.Image(n))
	}
	for _, p := range packages {
		out = append(out, registry+"/"+p+":"+r.Version)
	}
	return out, nil
}

// describe writes the file of an image, named after it.
func (c *cli) describe(ctx context.Context, image string) error {
	ref, err := name.ParseReference(image)
	if err != nil {
		return fmt.Errorf("cannot use image %s: %w", image, err)
	}
	img, end, err := c.read(ctx, ref)
	if err != nil {
		return err
	}
	defer end()
	digest, err := img.Digest()
	if err != nil {
		return fmt.Errorf("cannot read image %s: %w", image, err)
	}
	found, err := contentsOf(img)
	if err != nil {
		return fmt.Errorf("cannot read what is in image %s: %w", image, err)
	}
	short := strings.TrimPrefix(strings.SplitN(image, "@", 2)[0], strings.TrimSuffix(c.Registry, "/")+"/")
	bom, err := found.bom(ref.Context().Name(), short, digest.String(), c.version)
	if err != nil {
		return fmt.Errorf("cannot describe image %s: %w", image, err)
	}
	path := filepath.Join(c.Out, strings.NewReplacer("/", "-", ":", "-").Replace(short)+".cdx.json")
	if err := os.WriteFile(path, bom, 0o644); err != nil {
		return err
	}
	if !c.Attach {
		return nil
	}
	if err := attach(ctx, ref, img, bom); err != nil {
		return fmt.Errorf("cannot attach %s to image %s: %w", path, image, err)
	}
	return nil
}

// read reads an image from its registry, or from the archive of a release. The caller calls end
// when it is done with the image.
func (c *cli) read(ctx context.Context, ref name.Reference) (img v1.Image, end func(), err error) {
	if c.Release != "" {
		if img, end, err = c.archived(ref); err != nil {
			return nil, nil, fmt.Errorf("cannot read image %s from the archives of %s: %w", ref, c.Release, err)
		}
		return img, end, nil
	}
	img, err = remote.Image(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read image %s: log in to its registry, push the release with make install first, or name its registry with --registry: %w", ref, err)
	}
	return img, func() {}, nil
}

func main() {
	args := &cli{}
	k := kong.Parse(args, kong.Description("Writes the software bill of materials of each image of a release. Run it at the root of the repository."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := args.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		stop()
		k.Exit(1)
	}
}
