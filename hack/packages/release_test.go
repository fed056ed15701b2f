package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInstalledName(t *testing.T) {
	cases := map[string]struct {
		reason   string
		registry string
		want     string
	}{
		"OnePart":    {reason: "The host is left out.", registry: "registry.example.com/storeplane", want: "storeplane-function-storeplane"},
		"TwoParts":   {reason: "Slashes become hyphens.", registry: "10.88.0.1:5000/mirror/storeplane", want: "mirror-storeplane-function-storeplane"},
		"Underscore": {reason: "What is no part of a DNS label is dropped.", registry: "r.example.com/our_mirror.one", want: "ourmirror-one-function-storeplane"},
		"Long":       {reason: "A DNS label has at most 63 characters, and Crossplane leaves no hyphen at its end.", registry: "r.example.com/aaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbb/cccccccccccccccccccc", want: "aaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbbbbbb-cccccccccccccccccccc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := newRelease(tc.registry, "v1.2.3")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, r.installedName("function-storeplane")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNewReleaseRefuses(t *testing.T) {
	cases := map[string]struct {
		reason            string
		registry, version string
		want              string
	}{
		"NoPath":  {reason: "A registry alone has no place for packages.", registry: "registry.example.com", version: "v1.2.3", want: `cannot use registry "registry.example.com": it must be a host and a path, like registry.example.com/storeplane`},
		"Version": {reason: "Crossplane resolves dependencies by semantic versions.", registry: "registry.example.com/x", version: "latest", want: `cannot use version "latest": it must be a semantic version like v1.2.3`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newRelease(tc.registry, tc.version)
			if err == nil {
				t.Fatalf("%s\nno error", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTreeNames: the files of this tree contain the placeholders that a release replaces.
func TestTreeNames(t *testing.T) {
	r := testRelease(t)
	r.packages = map[string]string{functionRepository: "sha256:1", providerRepository: "sha256:2"}
	for file, want := range map[string][]string{
		"../../crossplane.yaml":              {"package: r.example.com/a/b/function-storeplane\n      version: sha256:1", "package: r.example.com/a/b/provider-storeplane\n      version: sha256:2"},
		"../../compositions/webapp.yaml":     {"name: a-b-function-storeplane"},
		"../../package/install/runtime.yaml": nil,
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := string(r.inPackage(b))
		for _, w := range want {
			if !strings.Contains(got, w+"\n") {
				t.Errorf("%s: want a line that ends with %q", file, w)
			}
		}
	}
}
