package release

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

const (
	installFolder = "../../package/install"
	operations    = "../../docs/operations.md"
)

var (
	// anchors are the links' targets, which differ between the pages.
	anchors = regexp.MustCompile(`\]\(#[^)]*\)`)
	inCode  = regexp.MustCompile("`([^`]*)`")
)

// uninstall returns the section of a page, and below it what an uninstall leaves.
func uninstall(t *testing.T, page string) (steps, stays string) {
	t.Helper()
	_, section, found := strings.Cut(read(t, page), "\n## Uninstall\n")
	if !found {
		t.Fatalf("%s has no section Uninstall", page)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	steps, stays, found = strings.Cut(section, "\nAn uninstall leaves these objects")
	if !found {
		t.Fatalf("%s does not list what an uninstall leaves", page)
	}
	return steps, stays
}

// commands returns the commands in a column of the table of what stays.
func commands(stays string, column int) []string {
	var out []string
	for line := range strings.SplitSeq(stays, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) <= column {
			continue
		}
		for _, m := range inCode.FindAllStringSubmatch(cells[column], -1) {
			if strings.HasPrefix(m[1], "kubectl ") {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// concerns reports whether one of the commands has the verb, kind and name.
func concerns(commands []string, verb, kind, name string) bool {
	kind = strings.ToLower(kind)
	for _, c := range commands {
		words := strings.Fields(c)
		if len(words) < 4 || words[1] != verb || words[3] != name {
			continue
		}
		for k := range strings.SplitSeq(words[2], ",") {
			if k == kind || k == kind+"s" || k == strings.TrimSuffix(kind, "y")+"ies" {
				return true
			}
		}
	}
	return false
}

// TestStays: the README and docs/operations.md list what outlives an uninstall, with the commands
// that show and remove it, which hack/release-test.sh runs.
func TestStays(t *testing.T) {
	_, want := uninstall(t, operations)
	_, got := uninstall(t, filepath.Join(folder, "README.md"))
	want, _, _ = strings.Cut(want, "\nA claim of the same name")
	if diff := cmp.Diff(strings.TrimSpace(anchors.ReplaceAllString(want, "]")), strings.TrimSpace(anchors.ReplaceAllString(got, "]"))); diff != "" {
		t.Errorf("what an uninstall leaves: -docs/operations.md, +README.md of a release:\n%s", diff)
	}
	shown, removed := commands(got, 2), commands(got, 3)
	files, err := filepath.Glob(filepath.Join(installFolder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stays := [][2]string{{"EnvironmentConfig", "storeplane"}, {"Lease", "storeplane-provider"}, {"Secret", "storeplane-cosign"}, {"ConfigMap", "storeplane-trust-root"}}
	for _, f := range files {
		for doc := range strings.SplitSeq(read(t, f), "\n---\n") {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
				t.Fatal(err)
			}
			if u.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
				stays = append(stays, [2]string{u.GetKind(), u.GetName()})
			}
		}
	}
	for _, s := range stays {
		if !concerns(shown, "get", s[0], s[1]) || !concerns(removed, "delete", s[0], s[1]) {
			t.Errorf("%s %s outlives an uninstall: want a row with the commands that show and delete it, got %q and %q", s[0], s[1], shown, removed)
		}
	}
	// The policy refuses the deletion of the namespace before.
	allowed := false
	for _, c := range removed {
		allowed = allowed || c == "kubectl annotate namespace storeplane-escrow storeplane.example.com/allow-deletion=true"
		if !allowed && strings.HasPrefix(c, "kubectl delete namespace ") {
			t.Errorf("the policy of package/install/escrow.yaml refuses %q: want the namespace annotated before", c)
		}
	}
}

// TestVerificationIsDeleted: each way to uninstall deletes the ImageConfig that is applied by hand,
// without which Crossplane would go on to refuse packages of that registry.
func TestVerificationIsDeleted(t *testing.T) {
	for _, page := range []string{operations, filepath.Join(folder, "README.md")} {
		steps, _ := uninstall(t, page)
		var ways int
		for i, block := range strings.Split(steps, "```") {
			if i%2 == 0 || !strings.Contains(block, "helm uninstall ") && !strings.Contains(block, "kubectl delete -f uninstall.yaml") {
				continue
			}
			ways++
			if !regexp.MustCompile(`(?m)^kubectl delete imageconfigs\.pkg\.crossplane\.io .*\bstoreplane-verification\b`).MatchString(block) {
				t.Errorf("%s: want ImageConfig storeplane-verification deleted, got:\n%s", page, block)
			}
		}
		if ways != 2 {
			t.Errorf("%s: want a block for Helm and one for the other ways to uninstall, got %d", page, ways)
		}
	}
}

// TestTrustRootPatch: the documents' patch reverts trust-root-patch.yaml.
func TestTrustRootPatch(t *testing.T) {
	before := appsv1.Deployment{}
	before.Spec.Template.Spec = corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "crossplane-init"}},
		Containers:     []corev1.Container{{Name: "crossplane"}},
		Volumes:        []corev1.Volume{{Name: "package-cache"}},
	}
	original, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := yaml.YAMLToJSON([]byte(read(t, filepath.Join(folder, "trust-root-patch.yaml"))))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(original, patch, appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(patched), "storeplane-trust-root") {
		t.Fatalf("the patch does not mount the trust root: %s", patched)
	}
	_, stays := uninstall(t, filepath.Join(folder, "README.md"))
	revert := regexp.MustCompile(`(?m)^ +'(\{.*\})'$`).FindStringSubmatch(stays)
	if revert == nil {
		t.Fatal("want a patch that removes the trust root")
	}
	got, err := strategicpatch.StrategicMergePatch(patched, []byte(revert[1]), appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	var after appsv1.Deployment
	if err := json.Unmarshal(got, &after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("Crossplane's Deployment without the trust root: -want, +got:\n%s", diff)
	}
}
