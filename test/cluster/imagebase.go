package main

import (
	"context"
	"fmt"
)

// findBase returns the name of the base image, and its ID if the same name may mean another image
// later.
func (c *cluster) findBase(ctx context.Context, base string) (ref, id string, err error) {
	switch base {
	case "scratch":
		return base, "", nil
	case "debian":
		ref, err = c.ensureBase(ctx)
		return ref, "", err
	}
	if _, err := installPackages(ctx, c.buildLog("apt"), imagePackages()); err != nil {
		return "", "", err
	}
	if id := imageID(ctx, base); id != "" {
		return base, id, nil
	}
	// An image that was pushed may no longer be in buildah's storage. It is pulled from the
	// cluster's own registry only: no base is ever fetched from elsewhere.
	if pushedDigest(ctx, base) == "" {
		return "", "", fmt.Errorf("cannot build on image %s: it has not been built on this machine", base)
	}
	if _, err := sh(ctx, "buildah", "pull", "--quiet", "--tls-verify=false", "docker://"+base); err != nil {
		return "", "", fmt.Errorf("cannot build on image %s: %w", base, err)
	}
	return base, imageID(ctx, base), nil
}
