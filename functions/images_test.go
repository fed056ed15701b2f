package functions_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/images"
)

// TestImages: a release runs the same programs on each node: all its own images are referenced by
// digest, from whichever registry they are pulled.
func TestImages(t *testing.T) {
	const registry, mirror = "registry.example.com/storeplane", "registry.company.com/mirror"
	digest := "@sha256:" + strings.Repeat("ab", 32)
	set := images.Set{Registry: registry, Digests: images.Digests{}}
	for _, name := range []string{"postgresql:17.2", "backup:postgresql-17", "redis:8"} {
		set.Digests[name] = digest[1:]
	}
	cases := map[string]struct{ reason, claim, settings, below string }{
		"Shop":     {reason: "A shop's cache is one of ours.", claim: functionstest.EcommercePlatform(functionstest.BigShop), below: registry},
		"Database": {reason: "So are servers, their managers and the Jobs that back them up.", claim: functionstest.DatabaseCluster(functionstest.Production), below: registry},
		"Mirror":   {reason: "A registry of the installation's own holds copies.", claim: functionstest.DatabaseCluster(functionstest.Production), settings: "{imageRegistry: " + mirror + "}", below: mirror},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, tc.claim, functions.WithImages(set))
			if tc.settings != "" {
				c.InstallSettings(tc.settings)
			}
			c.Settle()
			found := 0
			for component, o := range c.Observed {
				for _, image := range imagesOf(structpb.NewStructValue(o)) {
					if !strings.HasPrefix(image, tc.below+"/") {
						continue
					}
					found++
					if !strings.HasSuffix(image, digest) {
						t.Errorf("%s\ncomponent %s runs %s, without a digest", tc.reason, component, image)
					}
				}
			}
			if found == 0 {
				t.Errorf("%s\nno image is below %s", tc.reason, tc.below)
			}
		})
	}
}

// imagesOf returns all images that an object contains.
func imagesOf(v *structpb.Value) []string {
	var out []string
	for key, field := range v.GetStructValue().GetFields() {
		if image := field.GetStringValue(); key == "image" && image != "" {
			out = append(out, image)
		}
		out = append(out, imagesOf(field)...)
	}
	for _, item := range v.GetListValue().GetValues() {
		out = append(out, imagesOf(item)...)
	}
	return out
}
