package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// versionPattern is the first thing in a program's words that looks like a
// version.
var versionPattern = regexp.MustCompile(`\b\d+(\.\d+)+\b`)

// imageVersion runs a command of an image, for example "postgres --version",
// and returns the version that it prints. What was installed is known only to
// the image: its Dockerfile asks for a series, not for a release.
func imageVersion(ctx context.Context, ref, command string) (string, error) {
	out, err := sh(ctx, "buildah", "from", "--pull-never", ref)
	if err != nil {
		return "", fmt.Errorf("cannot start image %s: %w", ref, err)
	}
	container := strings.TrimSpace(out)
	defer sh(context.WithoutCancel(ctx), "buildah", "rm", container) //nolint:errcheck // Only takes room.
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

// withTag is an image's name with another tag.
func withTag(ref, tag string) string {
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		ref = ref[:i]
	}
	return ref + ":" + tag
}
