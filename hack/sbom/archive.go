package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// indexFile is the index of an OCI image layout.
const indexFile = "index.json"

// archived returns an image of a release, read from a copy of its layout in a folder, and a
// function that removes the folder.
func (c *cli) archived(ref name.Reference) (img v1.Image, end func(), err error) {
	repository := strings.TrimPrefix(ref.Context().Name(), strings.TrimSuffix(c.Registry, "/")+"/")
	files, err := filepath.Glob(filepath.Join(c.Release, "images", repository, "*.tar"))
	if err != nil {
		return nil, nil, err
	}
	for _, f := range files {
		digest, err := digestOf(f)
		if err != nil {
			return nil, nil, err
		}
		// Packages are known by their tags, and images by their digests: several tags of one digest
		// have one archive.
		if digest.String() != ref.Identifier() && strings.TrimSuffix(filepath.Base(f), ".tar") != ref.Identifier() {
			continue
		}
		return imageOf(f, digest)
	}
	return nil, nil, fmt.Errorf("there is none of it in images/%s: write the release again with make release", repository)
}

// digestOf returns the digest of the image in an archive.
func digestOf(archive string) (v1.Hash, error) {
	index := v1.IndexManifest{}
	err := walk(archive, func(file string, data io.Reader) error {
		if file != indexFile {
			return nil
		}
		return json.NewDecoder(data).Decode(&index)
	})
	if err != nil {
		return v1.Hash{}, err
	}
	if len(index.Manifests) != 1 {
		return v1.Hash{}, fmt.Errorf("%s has %d images instead of one", archive, len(index.Manifests))
	}
	return index.Manifests[0].Digest, nil
}

func imageOf(archive string, digest v1.Hash) (img v1.Image, end func(), err error) {
	dir, err := os.MkdirTemp("", "storeplane-sbom-")
	if err != nil {
		return nil, nil, err
	}
	end = func() { _ = os.RemoveAll(dir) }
	if err := walk(archive, func(file string, data io.Reader) error { return save(dir, file, data) }); err != nil {
		end()
		return nil, nil, err
	}
	l, err := layout.FromPath(dir)
	if err == nil {
		img, err = l.Image(digest)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return img, end, nil
}

// walk calls a function for each file of an archive.
func walk(archive string, do func(file string, data io.Reader) error) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := do(h.Name, r); err != nil {
			return fmt.Errorf("%s: %s: %w", archive, h.Name, err)
		}
	}
}

// save writes a file below a folder.
func save(dir, file string, data io.Reader) (err error) {
	if !filepath.IsLocal(file) {
		return errors.New("it is outside of the layout")
	}
	path := filepath.Join(dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	return errors.Join(err, f.Close())
}
