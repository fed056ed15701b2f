package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// The placeholders in the source tree that a release replaces.
const (
	treeRegistry = "registry.example.com/storeplane"
	treeVersion  = "v0.0.0"
	treeFunction = "storeplane-function-storeplane"
)

// devVersion requests a version that is derived from the content of the packages.
const devVersion = "dev"

var (
	validRegistry = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)
	validVersion  = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
)

// release is the names under which the packages are installed.
type release struct {
	registry string
	version  string

	// packages are the digests of the packages, by their repositories. Manifests and dependencies
	// name a package by its digest, since the content of a tag can be replaced.
	packages map[string]string

	// mirror is the registry from which everything is pulled, if that is not the registry of the
	// release.
	mirror string
}

func newRelease(registry, version string) (release, error) {
	registry = strings.TrimSuffix(registry, "/")
	if !validRegistry.MatchString(registry) {
		return release{}, fmt.Errorf("cannot use registry %q: it must be a host and a path, like %s", registry, treeRegistry)
	}
	if version != devVersion && !validVersion.MatchString(version) {
		return release{}, fmt.Errorf("cannot use version %q: it must be a semantic version like v1.2.3", version)
	}
	return release{registry: registry, version: version}, nil
}

// installedName returns the name that Crossplane gives a package which it installs as a dependency:
// the path of its repository without the host, as a DNS label.
func (r release) installedName(repo string) string {
	_, path, _ := strings.Cut(r.registry, "/")
	return dnsLabel(path + "/" + repo)
}

// dnsLabel implements Crossplane's rule, ToDNSLabel in pkg/xpkg/name.go of crossplane-runtime
// v2.4.0. That package imports the clients of every cloud's registry, so the rule is repeated here.
// The tests of both ways to install would fail if it changed.
func dnsLabel(s string) string {
	var out strings.Builder
	for i, r := range s {
		if i > 62 {
			break
		}
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			out.WriteRune(r)
		case strings.ContainsRune("./:-", r) && i != 0 && i != 62 && i != len(s)-1:
			out.WriteRune('-')
		}
	}
	return strings.Trim(out.String(), "-")
}

// dependency matches a dependency of the Configuration: all but its version, and its repository.
var dependency = regexp.MustCompile(`(package: \S+/(\S+)\n\s+version: )` + regexp.QuoteMeta(treeVersion))

// inPackage replaces the placeholders in files of a package.
func (r release) inPackage(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte(treeRegistry), []byte(r.registry))
	b = dependency.ReplaceAllFunc(b, func(found []byte) []byte {
		parts := dependency.FindSubmatch(found)
		if digest := r.packages[string(parts[2])]; digest != "" {
			return append(bytes.Clone(parts[1]), digest...)
		}
		return found
	})
	return bytes.ReplaceAll(b, []byte("name: "+treeFunction), []byte("name: "+r.installedName(functionRepository)))
}

// capitals matches the placeholders in package/install. A placeholder within a longer name, as in
// STOREPLANE_IMAGE_REGISTRY, is not replaced.
var capitals = regexp.MustCompile(`\b[A-Z_]+\b`)

// inManifest replaces the placeholders in a file of package/install.
func (r release) inManifest(b []byte) []byte { return r.inText(requirements{}, b) }

// inText replaces the same placeholders in the texts of a release, and those for the versions that
// it needs.
func (r release) inText(needs requirements, b []byte) []byte {
	names := map[string]string{
		"REGISTRY":      r.registry,
		"MIRROR":        cmp.Or(r.mirror, r.registry),
		"VERSION":       r.version,
		"CONFIGURATION": r.installedName(configurationRepository),
		"FUNCTION":      r.installedName(functionRepository),
		"PROVIDER":      r.installedName(providerRepository),

		"CONFIGURATION_DIGEST": r.packages[configurationRepository],
		"FUNCTION_DIGEST":      r.packages[functionRepository],
		"PROVIDER_DIGEST":      r.packages[providerRepository],

		"CHART_VERSION":      r.chartVersion(),
		"KUBERNETES_VERSION": needs.kubernetes,
		"CROSSPLANE_VERSION": needs.crossplane,
		"TESTED_KUBERNETES":  needs.testedKubernetes,
		"TESTED_CROSSPLANE":  needs.testedCrossplane,
	}
	return capitals.ReplaceAllFunc(b, func(name []byte) []byte {
		if value := names[string(name)]; value != "" {
			return []byte(value)
		}
		return name
	})
}
