package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var digest = "sha256:" + strings.Repeat("ab", 32)

func TestImage(t *testing.T) {
	s := Set{Registry: "registry.example.com:5000/storeplane", Digests: Digests{"postgresql:17": digest}}
	cases := map[string]struct {
		reason, name, want string
	}{
		"Pinned": {reason: "An image of the release is pulled by its digest.", name: "postgresql:17", want: s.Registry + "/postgresql:17@" + digest},
		"Own":    {reason: "One that an installation made itself is pulled by its tag.", name: "postgresql:16", want: s.Registry + "/postgresql:16"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, s.Image(tc.name)); diff != "" {
				t.Errorf("%s\nImage(%q): -want, +got:\n%s", tc.reason, tc.name, diff)
			}
		})
	}
}

func TestTagged(t *testing.T) {
	if got := (Release{Version: "v0.1.0"}).Tagged("postgresql:17"); got != "postgresql:17-v0.1.0" {
		t.Errorf("Tagged(...): got %s", got)
	}
}

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason, file string
		want         Release
		err          string
	}{
		"Release": {reason: "The file of a release is read.", file: `{"version": "v0.1.0", "digests": {"backup:mysql": "` + digest + `"}}`, want: Release{Version: "v0.1.0", Digests: Digests{"backup:mysql": digest}}},
		"Short":   {reason: "A digest that no registry knows is refused.", file: `{"digests": {"redis:8": "sha256:ab"}}`, err: `has "redis:8": "sha256:ab", where a name with a tag and a digest like sha256:… is expected`},
		"Latest":  {reason: "A name without a tag is none that is ever asked for.", file: `{"digests": {"redis": "` + digest + `"}}`, err: `has "redis": `},
		"Unknown": {reason: "A field that means nothing may be a mistake.", file: `{"images": {}}`, err: `unknown field "images"`},
		"Empty":   {reason: "A file that was not written to its end says nothing.", file: ``, err: "EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "images.json")
			if err := os.WriteFile(path, []byte(tc.file), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Read(path)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRead(...): -want, +got:\n%s", tc.reason, diff)
			}
			if said := ""; err != nil || tc.err != "" {
				if err != nil {
					said = err.Error()
				}
				if tc.err == "" || !strings.Contains(said, tc.err) || !strings.Contains(said, path) {
					t.Errorf("%s\nRead(...): want an error of %s with %q, got %q", tc.reason, path, tc.err, said)
				}
			}
		})
	}
}

func TestReadNone(t *testing.T) {
	if got, err := Read(""); got.Digests != nil || err != nil {
		t.Errorf("Without a release images are taken by their tags: got %v, %v", got, err)
	}
	if _, err := Read(filepath.Join(t.TempDir(), "images.json")); err == nil {
		t.Error("A release whose file is missing would run what a tag happens to be: want an error")
	}
}
