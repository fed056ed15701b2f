package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
)

// composeVerbs are the verbs that Crossplane v2.4 needs to compose a kind, all of which it uses:
// get to observe, list and watch to be notified of changes, create and patch to apply, update to
// remove its labels from objects that are no longer composed, and delete.
var composeVerbs = []string{"create", "delete", "get", "list", "patch", "update", "watch"}

// TestClusterRole: Crossplane has the rights that it needs for what the functions compose, and no
// others. The expected rules are derived from the golden files, which contain all kinds.
func TestClusterRole(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	b, err := os.ReadFile("../../package/install/clusterrole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(b, role); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(derive(t), grants(role.Rules)); diff != "" {
		t.Errorf("package/install/clusterrole.yaml: -what is composed, +what is granted:\n%s", diff)
	}
}

// grants converts rules to a map of their verbs by "group/resource".
func grants(rules []rbacv1.PolicyRule) map[string][]string {
	out := map[string][]string{}
	for _, r := range rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				out[g+"/"+res] = union(out[g+"/"+res], r.Verbs)
			}
		}
	}
	return out
}

func derive(t *testing.T) map[string][]string {
	t.Helper()
	ours := []string{appsv1.GroupVersion.Group, platformv1.GroupVersion.Group}
	out := map[string][]string{
		// These are composed only if the cluster has the kind, so no golden file has them.
		"monitoring.coreos.com/podmonitors": composeVerbs,
		"backup.example.com/backups":        composeVerbs,
		// The function requires them to check which namespace may restore what.
		"backup.example.com/restoregrants": {"get", "list", "watch"},
		// The function requires them to check which pods a namespace does not admit.
		"/namespaces": {"get", "list", "watch"},
		// The function requires them to report why none of a database's pods becomes ready.
		"/pods": {"get", "list", "watch"},
	}
	for _, u := range goldenObjects(t) {
		gvk := u.GroupVersionKind()
		if slices.Contains(ours, gvk.Group) {
			// Crossplane's RBAC manager grants the rights for composite resources itself.
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		key := gvk.Group + "/" + plural.Resource
		out[key] = union(out[key], composeVerbs)

		// A binding may be applied before its Role.
		if gvk.Kind == "RoleBinding" {
			roles := gvk.Group + "/roles"
			out[roles] = union(out[roles], []string{"bind"})
		}

		// Kubernetes lets a client grant only rights that it has itself.
		if gvk.Kind == "Role" {
			r := &rbacv1.Role{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
				t.Fatal(err)
			}
			for k, v := range grants(r.Rules) {
				out[k] = union(out[k], v)
			}
		}
	}
	return out
}

// goldenObjects returns all objects of the golden files.
func goldenObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	err := filepath.WalkDir("../../test/golden", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for doc := range bytes.SplitSeq(b, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(doc, &u.Object); err != nil {
				return err
			}
			if u.GetKind() != "" {
				out = append(out, u)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("cannot find golden files")
	}
	return out
}

func union(a, b []string) []string {
	set := map[string]bool{}
	for _, v := range append(slices.Clone(a), b...) {
		set[v] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func containsLine(text, end string) bool {
	for line := range strings.Lines(text) {
		if strings.HasSuffix(strings.TrimSpace(line), end) {
			return true
		}
	}
	return false
}
