package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"
)

// The verbs that teams have. editVerbs are those of Kubernetes' own edit for Deployments.
var (
	viewVerbs = []string{"get", "list", "watch"}
	editVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
)

// definition holds the common fields of a CompositeResourceDefinition and a
// CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string
		Scope string
		Names struct{ Kind, Plural string }

		Versions []struct {
			Subresources struct{ Scale map[string]string }
			Schema       struct{ OpenAPIV3Schema *extv1.JSONSchemaProps }
		}
	}
}

// scales reports whether kubectl scale works on the kind.
func (d *definition) scales() bool {
	for _, v := range d.Spec.Versions {
		if len(v.Subresources.Scale) > 0 {
			return true
		}
	}
	return false
}

// definitions returns all definitions, given the root of the repository.
func definitions(t *testing.T, root string) []definition {
	t.Helper()
	var out []definition
	for _, pattern := range []string{"apis/*/definition.yaml", "package/provider/crds/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot find %s: %v", pattern, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			d := definition{}
			if err := yaml.Unmarshal(b, &d); err != nil {
				t.Fatalf("cannot read %s: %v", f, err)
			}
			out = append(out, d)
		}
	}
	return out
}

// builtin are the groups of composed kinds that Kubernetes' own view shows (viewRules in
// https://github.com/kubernetes/kubernetes/blob/master/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
// It shows no Secrets.
var builtin = []string{"", "apps", "autoscaling", "batch", "networking.k8s.io", "policy"}

// composedElsewhere returns the composed kinds that Kubernetes' own view does not show, with the
// verbs by which storeplane plan and explain read them. Roles and RoleBindings are read by name.
func composedElsewhere(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{
		// It is composed only if the cluster has the kind, so no golden file has it.
		"monitoring.coreos.com/podmonitors": viewVerbs,
	}
	for _, u := range goldenObjects(t) {
		gvk := u.GroupVersionKind()
		if slices.Contains(builtin, gvk.Group) {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		key := gvk.Group + "/" + plural.Resource
		if out[key] = viewVerbs; gvk.Group == rbacv1.GroupName {
			out[key] = []string{"get"}
		}
	}
	return out
}

// TestTeamRoles: the roles let teams use every namespaced kind of Storeplane and read what claims
// compose, and grant nothing else: no status, and no cluster-scoped kind.
func TestTeamRoles(t *testing.T) {
	view, edit := map[string][]string{}, map[string][]string{}
	for _, d := range definitions(t, repository) {
		if d.Spec.Scope != "Namespaced" {
			continue
		}
		key := d.Spec.Group + "/" + d.Spec.Names.Plural
		view[key], edit[key] = viewVerbs, editVerbs
		if strings.HasSuffix(d.Spec.Names.Kind, "Usage") {
			edit[key] = viewVerbs // The provider writes these records.
		}
		if d.scales() {
			view[key+"/scale"], edit[key+"/scale"] = []string{"get"}, []string{"get", "patch", "update"}
		}
	}

	maps.Copy(view, composedElsewhere(t))

	b, err := os.ReadFile("../../package/install/team-roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]*rbacv1.ClusterRole{}
	for doc := range bytes.SplitSeq(b, []byte("\n---\n")) {
		r := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(doc, r); err != nil {
			t.Fatal(err)
		}
		roles[r.Name] = r
	}
	cases := map[string]struct {
		reason string
		want   map[string][]string
		into   []string
	}{
		"storeplane-view": {reason: "Who may look at a namespace may look at its claims and at what they compose.", want: view, into: []string{"view"}},
		"storeplane-edit": {reason: "Who may change a namespace's workloads may claim in it.", want: edit, into: []string{"admin", "edit"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, ok := roles[name]
			if !ok {
				t.Fatalf("%s\ncannot find it in team-roles.yaml", tc.reason)
			}
			if diff := cmp.Diff(tc.want, grants(r.Rules)); diff != "" {
				t.Errorf("%s\n-what is defined, +what is granted:\n%s", tc.reason, diff)
			}
			var into []string
			for k, v := range r.Labels {
				if role, ok := strings.CutPrefix(k, "rbac.authorization.k8s.io/aggregate-to-"); ok && v == "true" {
					into = append(into, role)
				}
			}
			slices.Sort(into)
			if diff := cmp.Diff(tc.into, into); diff != "" {
				t.Errorf("%s\nthe built-in roles that get its rules: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if len(roles) != len(cases) {
		t.Errorf("want these two roles and no other, got %d", len(roles))
	}
}
