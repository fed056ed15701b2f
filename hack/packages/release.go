package main

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// The names that stand in the tree for what a release replaces.
const (
	treeRegistry = "registry.example.com/storeplane"
	treeVersion  = "v0.0.0"
	treeFunction = "storeplane-function-storeplane"
)

// devVersion asks for a version made of the packages' content.
const devVersion = "dev"

var (
	validRegistry = regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`)
	validVersion  = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
)

// release says under which names the packages are installed.
type release struct {
	registry string
	version  string

	// mirror is where all of it is pulled from, if that is not the registry.
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

// installedName is what Crossplane names a package that it installs as a
// dependency: its repository's path without the host, as a DNS label.
func (r release) installedName(repo string) string {
	_, path, _ := strings.Cut(r.registry, "/")
	return dnsLabel(path + "/" + repo)
}

// dnsLabel is Crossplane's rule, ToDNSLabel in pkg/xpkg/name.go of
// crossplane-runtime v2.4.0. That package brings the clients of every cloud's
// registry with it, so the rule is repeated here; the tests of both ways to
// install would notice if it changed.
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

// inPackage replaces what stands in the tree's own files.
func (r release) inPackage(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte(treeRegistry), []byte(r.registry))
	b = bytes.ReplaceAll(b, []byte("version: "+treeVersion), []byte("version: "+r.version))
	return bytes.ReplaceAll(b, []byte("name: "+treeFunction), []byte("name: "+r.installedName("function-storeplane")))
}

// capitals are the names of package/install that a release replaces. One that is part of a
// longer one, as in STOREPLANE_IMAGE_REGISTRY, is none.
var capitals = regexp.MustCompile(`\b[A-Z_]+\b`)

// inManifest replaces the capital names of package/install.
func (r release) inManifest(b []byte) []byte { return r.inText(requirements{}, b) }

// inText replaces the same names in what a release says of itself, and the versions that
// it needs.
func (r release) inText(needs requirements, b []byte) []byte {
	names := map[string]string{
		"REGISTRY":           r.registry,
		"MIRROR":             cmp.Or(r.mirror, r.registry),
		"VERSION":            r.version,
		"CONFIGURATION":      r.installedName("storeplane"),
		"FUNCTION":           r.installedName("function-storeplane"),
		"PROVIDER":           r.installedName("provider-storeplane"),
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
