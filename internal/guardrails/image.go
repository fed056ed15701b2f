package guardrails

import (
	"regexp"
	"strings"
)

// The same expressions stand in package/install/admission.yaml.
var (
	// withHost begins with the host of a registry: its first segment has a dot,
	// a port or an upper-case letter, or is localhost.
	withHost = regexp.MustCompile(`^(localhost|[^/]*[.:A-Z][^/]*)/`)

	// versioned has a tag or a digest.
	versioned = regexp.MustCompile(`@|:[^/@]+$`)
)

// qualified names the registry of an image that leaves it out, as a container
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

// isFrom compares whole segments of the path: of one with a path, the last may be
// the repository itself. After a host alone a colon begins a port, not a tag.
func isFrom(image, registry string) bool {
	rest, ok := strings.CutPrefix(image, registry)
	if !ok {
		return false
	}
	return strings.HasPrefix(rest, "/") ||
		strings.Contains(registry, "/") && (rest == "" || rest[0] == ':' || rest[0] == '@')
}

// isLatest is true for an image that may be another one tomorrow by its name.
func isLatest(image string) bool {
	return !versioned.MatchString(image) || strings.HasSuffix(image, ":latest")
}
