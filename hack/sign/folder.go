package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	gcrempty "github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/sigstore/cosign/v3/pkg/oci/empty"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
)

// The files and the folder that signing adds to a release, and its checksums.
const (
	checksums       = "SHA256SUMS"
	checksumsSigned = "SHA256SUMS.sig"
	signaturesDir   = "signatures"
	publicKeyFile   = "cosign.pub"
	trustRootFile   = "trust-root.yaml"
)

// folder signs the folder of a release: each of its archives, and its checksums. Earlier signatures
// are replaced.
func (s *signer) folder(ctx context.Context, dir string) error {
	sums, err := verified(dir)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, signaturesDir)); err != nil {
		return err
	}
	maps.DeleteFunc(sums, func(file, _ string) bool {
		return strings.HasPrefix(file, signaturesDir+"/") || file == publicKeyFile || file == trustRootFile
	})
	archives, err := filepath.Glob(filepath.Join(dir, "images", "*", "*.tar"))
	if err != nil {
		return err
	}
	for _, a := range archives {
		signed, err := s.archive(ctx, dir, a)
		if err != nil {
			return fmt.Errorf("cannot sign %s: %w", a, err)
		}
		fmt.Fprintln(os.Stderr, "sign:", signed)
	}
	if err := s.writeTrust(dir); err != nil {
		return err
	}
	if err := addSums(dir, sums); err != nil {
		return err
	}
	return s.signSums(dir, sums)
}

// verified returns the checksums of a release by file, and an error if a file differs from its
// checksum: only the release's own files are signed.
func verified(dir string) (map[string]string, error) {
	list, err := os.ReadFile(filepath.Join(dir, checksums))
	if err != nil {
		return nil, fmt.Errorf("cannot read the release: write it with make release first: %w", err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(list)) {
		want, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !filepath.IsLocal(file) {
			return nil, fmt.Errorf("cannot use %s of %s: %q is no checksum of a file", checksums, dir, line)
		}
		got, err := sum(filepath.Join(dir, file))
		if err != nil {
			return nil, fmt.Errorf("cannot read the release: %w", err)
		}
		if got != want {
			return nil, fmt.Errorf("%s is not the one of this release: write the release again with make release", filepath.Join(dir, file))
		}
		out[file] = want
	}
	return out, nil
}

func sum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// addSums adds the checksums of the files that signing adds to a release.
func addSums(dir string, sums map[string]string) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || sums[file] != "" || file == checksums || file == checksumsSigned {
			return err
		}
		if !strings.HasPrefix(file, signaturesDir+"/") && file != publicKeyFile && file != trustRootFile {
			return fmt.Errorf("%s is not listed in %s: write the release again with make release", filepath.Join(dir, file), checksums)
		}
		sums[file], err = sum(filepath.Join(dir, file))
		return err
	})
}

func (s *signer) signSums(dir string, sums map[string]string) error {
	var list []byte
	for _, file := range slices.Sorted(maps.Keys(sums)) {
		list = fmt.Appendf(list, "%s  %s\n", sums[file], file)
	}
	sig, err := s.blob(list)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, checksums), list, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, checksumsSigned), append(sig, '\n'), 0o644)
}

// archive writes an archive of an image's signature, signatures/<repository>/<tag>.tar, and returns
// its path.
func (s *signer) archive(ctx context.Context, dir, image string) (string, error) {
	digest, err := digestOf(image)
	if err != nil {
		return "", err
	}
	repository := filepath.Base(filepath.Dir(image))
	// Only the digest is compared when a signature is verified, so that it is valid in every
	// registry.
	ref, err := name.NewDigest(repository+"@"+digest.String(), name.WithDefaultRegistry("storeplane"))
	if err != nil {
		return "", err
	}
	sig, err := s.sign(ctx, ref)
	if err != nil {
		return "", err
	}
	img, err := mutate.AppendSignatures(empty.Signatures(), false, sig)
	if err != nil {
		return "", err
	}
	tag := digest.Algorithm + "-" + digest.Hex + ".sig"
	to := filepath.Join(dir, signaturesDir, repository, tag+".tar")
	return to, writeArchive(to, tag, img)
}

// digestOf returns the digest of the image, or of the index of images, in an archive.
func digestOf(archive string) (v1.Hash, error) {
	f, err := os.Open(archive)
	if err != nil {
		return v1.Hash{}, err
	}
	defer func() { _ = f.Close() }()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return v1.Hash{}, errors.New("it has no index.json")
		}
		if err != nil {
			return v1.Hash{}, err
		}
		if path.Clean(h.Name) != "index.json" {
			continue
		}
		index := v1.IndexManifest{}
		if err := json.NewDecoder(r).Decode(&index); err != nil {
			return v1.Hash{}, err
		}
		if len(index.Manifests) != 1 {
			return v1.Hash{}, fmt.Errorf("it has %d images instead of one", len(index.Manifests))
		}
		return index.Manifests[0].Digest, nil
	}
}

// writeArchive writes an OCI image layout of one image, as load.sh of a release pushes it.
func writeArchive(to, tag string, img v1.Image) (err error) {
	work, err := os.MkdirTemp("", "storeplane-sign-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	l, err := layout.Write(work, gcrempty.Index)
	if err != nil {
		return err
	}
	if err := l.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := tar.NewWriter(f)
	return errors.Join(addTree(t, work), t.Close())
}

func addTree(t *tar.Writer, dir string) error {
	return fs.WalkDir(os.DirFS(dir), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: file, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = t.Write(data)
		return err
	})
}
