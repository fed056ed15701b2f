package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	baseSuite = "trixie"
	// baseEdition is raised when finishBase changes.
	baseEdition = "1"
	basePath    = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// noServices is the policy-rc.d script that keeps packages from starting their services while an
// image is built, as in Debian's public images.
const noServices = "#!/bin/sh\nexit 101\n"

// baseCmd is the command base.
type baseCmd struct{}

// Run builds the base image unless it is cached, and prints its name.
func (*baseCmd) Run(ctx context.Context, c *cluster) error {
	if err := needRoot(); err != nil {
		return fmt.Errorf("cannot make the base image: %w", err)
	}
	ref, err := c.ensureBase(ctx)
	if err != nil {
		return err
	}
	fmt.Println(ref)
	return nil
}

func baseRef() string {
	key := sha256.Sum256([]byte(baseSuite + " minbase " + runtime.GOARCH + " " + baseEdition + noServices))
	return "localhost/storeplane-base:" + baseSuite + "-" + hex.EncodeToString(key[:])[:8]
}

// ensureBase builds, unless it is cached, the image on which all others are based, and returns
// its name. It is a Debian from the machine's own mirror, because no registry is used from which
// Debian's own image could be pulled.
func (c *cluster) ensureBase(ctx context.Context) (string, error) {
	if _, err := installPackages(ctx, c.buildLog("apt"), imagePackages()); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(c.cache, "base", "lock"), "making the base image")
	if err != nil {
		return "", err
	}
	defer unlock()
	ref := baseRef()
	if imageID(ctx, ref) != "" {
		return ref, nil
	}
	mirror, err := debianMirror()
	if err != nil {
		return "", err
	}
	defer ticker("making base image " + ref)()
	dir, err := os.MkdirTemp(filepath.Join(c.cache, "base"), "root-")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder for the base image: %w", err)
	}
	defer os.RemoveAll(dir)
	debs := filepath.Join(c.cache, "debs")
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the cache of Debian packages: %w", err)
	}
	log := c.buildLog("base")
	argv := []string{"debootstrap", "--variant=minbase", "--cache-dir=" + debs, baseSuite, dir, mirror}
	if _, err := run(ctx, command{log: log, argv: argv}); err != nil {
		return "", fmt.Errorf("cannot make the base image: %w", err)
	}
	if err := finishBase(dir); err != nil {
		return "", fmt.Errorf("cannot finish the base image: %w", err)
	}
	return ref, commitBase(ctx, dir, ref)
}

// finishBase removes the caches and logs that no image needs, and adds the policy-rc.d script
// that Debian's own images have.
func finishBase(dir string) error {
	for _, pattern := range []string{"var/cache/apt/archives/*.deb", "var/lib/apt/lists/*", "var/log/*.log", "var/cache/apt/*.bin"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := os.RemoveAll(f); err != nil {
				return err
			}
		}
	}
	return writeFile(filepath.Join(dir, "usr/sbin/policy-rc.d"), noServices, 0o755)
}

func commitBase(ctx context.Context, dir, ref string) error {
	out, err := sh(ctx, "buildah", "from", "scratch")
	if err != nil {
		return fmt.Errorf("cannot start image %s: %w", ref, err)
	}
	container := strings.TrimSpace(out)
	defer sh(context.WithoutCancel(ctx), "buildah", "rm", container) //nolint:errcheck // A container that is left over only takes disk space.
	for _, argv := range [][]string{
		{"buildah", "add", "--quiet", container, dir, "/"},
		{"buildah", "config", "--env", "PATH=" + basePath, "--cmd", "bash", container},
		{"buildah", "commit", "--quiet", container, ref},
	} {
		if _, err := sh(ctx, argv...); err != nil {
			return fmt.Errorf("cannot make image %s: %w", ref, err)
		}
	}
	return nil
}
