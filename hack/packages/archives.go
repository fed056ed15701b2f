package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/storeplane/storeplane/internal/images"
)

// refName and containerdName are annotations of an image in an archive: its tag, and the name that
// containerd gives it.
const (
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

// archives writes an archive of each image and each package of the release,
// images/<repository>/<tag>.tar below a folder: an OCI image layout, which keeps digests. An image
// with several names has one archive.
func (b *builder) archives(ctx context.Context, to string) error {
	written := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(b.digests)) {
		repository, tag, _ := strings.Cut(b.imagesOf().Tagged(name), ":")
		digest := b.digests[name]
		if written[repository+digest] {
			continue
		}
		written[repository+digest] = true
		from := images.Set{Registry: b.images, Digests: b.digests}.Image(name)
		// Pods refer to it by its digest, and containerd leaves the tag out of such a name.
		known := b.release.registry + "/" + repository + "@" + digest
		if err := archive(ctx, from, known, tag, filepath.Join(to, repository, tag+".tar")); err != nil {
			return err
		}
	}
	return b.packageArchives(ctx, to)
}

// packageArchives archives the packages as `crossplane xpkg push` has pushed them to the registry of
// this process: that command annotates the layer of a package that Crossplane reads.
func (b *builder) packageArchives(ctx context.Context, to string) error {
	for _, repository := range packages {
		from := b.local + "/" + repository + ":" + b.release.version
		known := b.release.registry + "/" + repository + "@" + b.release.packages[repository]
		if err := archive(ctx, from, known, b.release.version, filepath.Join(to, repository, b.release.version+".tar")); err != nil {
			return err
		}
	}
	return nil
}

// serveRegistry serves a registry on the loopback interface until it is stopped.
func serveRegistry(ctx context.Context) (at string, stop func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("cannot serve the packages: %w", err)
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	return l.Addr().String() + "/storeplane", func() { _ = server.Close() }, nil
}

// archive archives an image, or all images of an index, with a tag and the name that nodes have for
// it.
func archive(ctx context.Context, from, known, tag, to string) error {
	desc, err := crane.Get(from, crane.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("cannot read image %s: %w", from, err)
	}
	dir, err := os.MkdirTemp("", "storeplane-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := writeLayout(dir, desc, map[string]string{refName: tag, containerdName: known}); err != nil {
		return fmt.Errorf("cannot write image %s: %w", from, err)
	}
	if err := writeTar(to, os.DirFS(dir)); err != nil {
		return fmt.Errorf("cannot write image %s: %w", from, err)
	}
	return nil
}

func writeLayout(dir string, desc *remote.Descriptor, annotations map[string]string) error {
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if desc.MediaType.IsIndex() {
		var index v1.ImageIndex
		if index, err = desc.ImageIndex(); err != nil {
			return err
		}
		return l.AppendIndex(index, layout.WithAnnotations(annotations))
	}
	image, err := desc.Image()
	if err != nil {
		return err
	}
	return l.AppendImage(image, layout.WithAnnotations(annotations))
}

// writeTar archives the files of a folder, with the same bytes for the same files.
func writeTar(path string, from fs.FS) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := tar.NewWriter(f)
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return addFile(t, from, name)
	})
	return errors.Join(err, t.Close())
}

func addFile(t *tar.Writer, from fs.FS, name string) error {
	f, err := from.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}
