package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// versionPattern matches the version in a program's output. Its first match is used.
var versionPattern = regexp.MustCompile(`\b\d+(\.\d+)+\b`)

// imageVersion runs a command of an image, for example "postgres --version", and returns the
// version that it prints. The release is known only from the image: its Dockerfile names a
// series.
func imageVersion(ctx context.Context, ref, command string) (string, error) {
	out, err := sh(ctx, "buildah", "from", "--pull-never", ref)
	if err != nil {
		return "", fmt.Errorf("cannot start image %s: %w", ref, err)
	}
	container := strings.TrimSpace(out)
	defer sh(context.WithoutCancel(ctx), "buildah", "rm", container) //nolint:errcheck // A container that is left over only takes disk space.
	said, err := sh(ctx, append([]string{"buildah", "run", "--isolation", "chroot", container, "--"}, strings.Fields(command)...)...)
	if err != nil {
		return "", fmt.Errorf("cannot run %q in image %s: %w", command, ref, err)
	}
	version := versionPattern.FindString(said)
	if version == "" {
		return "", fmt.Errorf("cannot find a version in what %q of image %s prints: %q", command, ref, said)
	}
	return version, nil
}

// withTag returns an image's name with another tag.
func withTag(ref, tag string) string {
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		ref = ref[:i]
	}
	return ref + ":" + tag
}
