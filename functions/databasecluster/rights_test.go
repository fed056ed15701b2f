package databasecluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestRights: the servers have only the permissions on their own objects that they need. On others
// they only have those that RBAC cannot limit by name.
func TestRights(t *testing.T) {
	states := []string{"orders-postgresql", "orders-postgresql-status", "orders-postgresql-config", "orders-postgresql-failover", "orders-postgresql-leader", "orders-postgresql-sync"}
	var pods, volumes []string
	for i := range 10 {
		pods = append(pods, fmt.Sprintf("orders-postgresql-%d", i))
		volumes = append(volumes, fmt.Sprintf("data-orders-postgresql-%d", i))
	}
	rules := func(volumes []string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: states, Verbs: []string{"get", "patch", "update"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: pods, Verbs: []string{"get", "patch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"statefulsets"}, ResourceNames: []string{"orders-postgresql"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, ResourceNames: volumes, Verbs: []string{"get", "list", "patch", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"orders-credentials"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		}
	}
	for name, spec := range map[string]string{"One": functionstest.OneServer, "Production": functionstest.Production, "Big": functionstest.BigCluster} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, spec)
			c.Settle()
			want := rules(volumes)
			if name == "Production" {
				// The Role also covers the volume of the backups.
				want = rules(append(slices.Clone(volumes), "data-orders-repository-0"))
			}
			role, binding := functionstest.As[rbacv1.Role](t, c.Observed["role"]), functionstest.As[rbacv1.RoleBinding](t, c.Observed["rolebinding"])
			if diff := cmp.Diff(want, role.Rules); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			account := functionstest.As[corev1.ServiceAccount](t, c.Observed["account"])
			if binding.RoleRef.Name != role.Name || len(binding.Subjects) != 1 || binding.Subjects[0].Name != account.Name || binding.Subjects[0].Namespace != "team" {
				t.Errorf("got %v for Role %s and ServiceAccount %s", binding, role.Name, account.Name)
			}
			set := servers(t, c)
			if got := set.Spec.Template.Spec.ServiceAccountName; got != account.Name {
				t.Errorf("The pods run as %s, the account is %s", got, account.Name)
			}

			// The objects that the rules name exist.
			if set.Name != "orders-postgresql" || !slices.Contains(volumes, set.Spec.VolumeClaimTemplates[0].Name+"-"+set.Name+"-0") || functionstest.As[corev1.Secret](t, c.Observed["credentials"]).Name != "orders-credentials" {
				t.Errorf("the rules name other objects than there are")
			}
			for _, r := range role.Rules {
				if len(r.ResourceNames) == 0 && slices.Contains(r.Verbs, "delete") {
					t.Errorf("only its own may be deleted: %v", r)
				}
				for _, x := range slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.ResourceNames) {
					if x == "*" {
						t.Errorf("there are no rights to all: %v", r)
					}
				}
			}
		})
	}
}
