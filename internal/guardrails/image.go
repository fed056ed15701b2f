package guardrails

import (
	"regexp"
	"strings"
)

// The same expressions are in package/install/admission.yaml.
var (
	// withHost matches an image that begins with the host of a registry: its first segment has a
	// dot, a port or an upper-case letter, or is localhost.
	withHost = regexp.MustCompile(`^(localhost|[^/]*[.:A-Z][^/]*)/`)

	// versioned matches an image with a tag or a digest.
	versioned = regexp.MustCompile(`@|:[^/@]+$`)
)

// qualified returns an image with its registry, which it adds if it is left out, as a container
// runtime does.
func qualified(image string) string {
	switch {
	case withHost.MatchString(image):
		return image
	case strings.Contains(image, "/"):
		return "docker.io/" + image
	default:
		return "docker.io/library/" + image
	}
}

// holder returns the registry that a qualified image is from, or "".
func holder(image string, registries []string) string {
	for _, r := range registries {
		if isFrom(image, r) {
			return r
		}
	}
	return ""
}

// isFrom reports whether an image is from a registry, by whole segments of the path: the last
// segment of a registry with a path may be the repository itself. After a host alone a colon begins
// a port, not a tag.
func isFrom(image, registry string) bool {
	rest, ok := strings.CutPrefix(image, registry)
	if !ok {
		return false
	}
	return strings.HasPrefix(rest, "/") ||
		strings.Contains(registry, "/") && (rest == "" || rest[0] == ':' || rest[0] == '@')
}

// isLatest reports whether the name of an image may stand for another one later: it has no version,
// or the tag latest.
func isLatest(image string) bool {
	return !versioned.MatchString(image) || strings.HasSuffix(image, ":latest")
}
