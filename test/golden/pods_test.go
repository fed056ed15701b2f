package golden

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/render"
)

// podsFile lists the pods of every example as the newest release declares them or, before the
// first release, as they were when the file was created. A release updates it with
// STOREPLANE_RELEASED=1.
const podsFile = "testdata/pods.txt"

// podsOf returns the hash of the pods that each workload of each example declares, by the claim's
// kind, the example and the workload.
func podsOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*/" + convergeFile)
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the examples: %v", err)
	}
	out := map[string]string{}
	for _, file := range files {
		objects, err := render.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		example, err := filepath.Rel("testdata", filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			owner, pods := metav1.GetControllerOf(u), u.GetAnnotations()[compose.PodsAnnotation]
			if kind := u.GetKind(); owner == nil || pods == "" || kind != "Deployment" && kind != "StatefulSet" {
				continue
			}
			out[fmt.Sprintf("%s %s %s/%s", owner.Kind, example, u.GetKind(), u.GetName())] = pods
		}
	}
	return out
}

// restarts matches the entries of the changelog that announce which pods a release replaces.
var restarts = regexp.MustCompile(`(?ms)^- \*\*Restarts\*\*.*?(?:^- |\z)`)

// unannounced returns the workloads whose pods differ from those of the previous release, if no
// such entry of the changelog names the kind of their claim. New and removed examples restart no
// pods.
func unannounced(before, now map[string]string, changelog string) []string {
	said := strings.Join(restarts.FindAllString(changelog, -1), "")
	var out []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		kind, _, _ := strings.Cut(name, " ")
		if pods, ok := now[name]; ok && pods != before[name] && !strings.Contains(said, kind) {
			out = append(out, name)
		}
	}
	return out
}

// TestPods: a release that replaces pods without a change by a user announces it in the
// changelog. Pods wait for maintenance windows and waves, but without these all of them are
// replaced at once.
func TestPods(t *testing.T) {
	now := podsOf(t)
	if os.Getenv("STOREPLANE_RELEASED") != "" {
		writePods(t, now)
	}
	b, err := os.ReadFile(podsFile)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if name, pods, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
			before[name] = pods
		}
	}
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, unreleased, _ := strings.Cut(string(changelog), "\n## Unreleased\n")
	unreleased, _, _ = strings.Cut(unreleased, "\n## ")
	if names := unannounced(before, now, unreleased); len(names) > 0 {
		t.Errorf("These pods are others than those of the release before:\n  %s\nIf they have to be, add an entry to CHANGELOG.md that begins with **Restarts**, names the kinds of claims and says why.", strings.Join(names, "\n  "))
	}
}

func writePods(t *testing.T, now map[string]string) {
	t.Helper()
	b := &strings.Builder{}
	fmt.Fprintln(b, "# The pods of every example, by a hash of what the newest release declares: see pods_test.go.")
	for _, name := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(b, "%s: %s\n", name, now[name])
	}
	if err := os.WriteFile(podsFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestUnannounced: a changed workload needs an entry of the changelog that names the kind of its
// claim.
func TestUnannounced(t *testing.T) {
	const web, db = "WebApp webapp/full Deployment/a", "DatabaseCluster database/b StatefulSet/b"
	before := map[string]string{web: "1", db: "1"}
	cases := map[string]struct {
		reason    string
		now       map[string]string
		changelog string
		want      []string
	}{
		"Same":    {reason: "What is the same needs none.", now: before},
		"Changed": {reason: "What is another needs one.", now: map[string]string{web: "2", db: "2"}, want: []string{db, web}},
		"Said":    {reason: "It names the kind.", now: map[string]string{web: "2", db: "2"}, changelog: "- New.\n- **Restarts** all pods\n  of WebApps, for a probe.\n- DatabaseCluster: else.\n", want: []string{db}},
		"Last":    {reason: "It may be the last one.", now: map[string]string{db: "2"}, changelog: "- **Restarts** servers of DatabaseClusters.\n"},
		"Gone":    {reason: "An example that goes restarts nothing.", now: map[string]string{web: "1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := unannounced(before, tc.now, tc.changelog); !slices.Equal(got, tc.want) {
				t.Errorf("%s\nunannounced(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
