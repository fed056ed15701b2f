package render_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/render"
)

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claim.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadClaim(t *testing.T) {
	const one = "apiVersion: apps.example.com/v1\nkind: WebApp\nmetadata:\n  name: a\n"
	cases := map[string]struct {
		reason string
		yaml   string
		want   string
	}{
		"One":        {reason: "One claim is what is wanted.", yaml: one},
		"Separators": {reason: "Empty documents and comments around it do no harm.", yaml: "# a comment\n---\n" + one + "---\n# the end\n"},
		"Two": {
			reason: "Several objects are refused, since it would not be clear what is rendered.",
			yaml:   one + "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: b\n",
			want:   "cannot read claim: FILE holds 2 objects (WebApp/a, Secret/b), and only one can be rendered at a time: put each into a file of its own",
		},
		"Empty":    {reason: "Nothing to render is an error.", yaml: "# nothing\n", want: "cannot read claim: FILE is empty"},
		"NoObject": {reason: "Other YAML is no claim.", yaml: "a: b\n", want: "cannot read FILE: it is no Kubernetes object: it has no apiVersion or no kind"},
		"Twice": {
			reason: "Of two values for one field it is unknown which counts.",
			yaml:   one + "kind: WebApp\n",
			want:   "cannot read FILE: yaml: unmarshal errors:\n  line 5: key \"kind\" already set in map",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := file(t, tc.yaml)
			_, err := render.LoadClaim(path)
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), path, "FILE")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nLoadClaim(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLoadClaimNoFile(t *testing.T) {
	_, err := render.LoadClaim("no-such-file.yaml")
	if diff := cmp.Diff("cannot read no-such-file.yaml: no such file or directory", err.Error()); diff != "" {
		t.Errorf("LoadClaim(...): -want, +got:\n%s", diff)
	}
}

func TestLoadFolder(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n",
		"a.yml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: a1}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a2}\n",
		"c.txt":  "no YAML",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := render.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(all))
	for _, u := range all {
		got = append(got, u.GetName())
	}
	if diff := cmp.Diff([]string{"a1", "a2", "b"}, got); diff != "" {
		t.Errorf("\nAll YAML files of a folder are read, in the order of their names.\nLoad(...): -want, +got:\n%s", diff)
	}
}
