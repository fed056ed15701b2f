package main

import (
	"context"
	"fmt"
)

// findBase names the image to build on, and says which one of that name it is
// where that is not in the name.
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
	// An image that was pushed need not be in buildah's storage any more. Only
	// the cluster's own registry is asked: no base is ever fetched from elsewhere.
	if pushedDigest(ctx, base) == "" {
		return "", "", fmt.Errorf("cannot build on image %s: it has not been built on this machine", base)
	}
	if _, err := sh(ctx, "buildah", "pull", "--quiet", "--tls-verify=false", "docker://"+base); err != nil {
		return "", "", fmt.Errorf("cannot build on image %s: %w", base, err)
	}
	return base, imageID(ctx, base), nil
}
