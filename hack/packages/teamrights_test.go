package main

import (
	"fmt"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// TestTeamRights: on a real API server, members of a team with only a RoleBinding to Kubernetes'
// own edit or view have the expected rights.
func TestTeamRights(t *testing.T) {
	c := planetest.Client(t, planetest.Start(t, true).Config(plane.Admin))
	installTeam(t, c)

	type ask struct{ user, verb, group, resource, subresource, namespace string }
	cases := map[string]struct {
		reason string
		ask    ask
		want   bool
	}{
		"Claim":              {reason: "A team claims in its namespace.", ask: ask{user: "editor", verb: "create", group: "platform.example.com", resource: "ecommerceplatforms", namespace: "shop"}, want: true},
		"Change":             {reason: "It changes its claims.", ask: ask{user: "editor", verb: "patch", group: "apps.example.com", resource: "databaseclusters", namespace: "shop"}, want: true},
		"Restore":            {reason: "It restores its data.", ask: ask{user: "editor", verb: "create", group: "backup.example.com", resource: "restores", namespace: "shop"}, want: true},
		"ReadClaims":         {reason: "Who edits may look, too.", ask: ask{user: "editor", verb: "watch", group: "apps.example.com", resource: "webapps", namespace: "shop"}, want: true},
		"Status":             {reason: "What is said of a claim is said by Crossplane alone.", ask: ask{user: "editor", verb: "update", group: "platform.example.com", resource: "ecommerceplatforms", subresource: "status", namespace: "shop"}},
		"OtherNamespace":     {reason: "Another team's claims are out of reach.", ask: ask{user: "editor", verb: "get", group: "platform.example.com", resource: "ecommerceplatforms", namespace: "bank"}},
		"AllNamespaces":      {reason: "So is a list of all.", ask: ask{user: "editor", verb: "list", group: "platform.example.com", resource: "ecommerceplatforms"}},
		"OtherSecrets":       {reason: "Another team's Secrets are out of reach.", ask: ask{user: "editor", verb: "get", resource: "secrets", namespace: "bank"}},
		"ClusterCredentials": {reason: "Who may reach the company's store is the platform team's to say.", ask: ask{user: "editor", verb: "create", group: "storeplane.example.com", resource: "clusterproviderconfigs"}},
		"Settings":           {reason: "So are the settings of the installation.", ask: ask{user: "editor", verb: "update", group: "apiextensions.crossplane.io", resource: "environmentconfigs"}},
		"Records":            {reason: "What records the use of credentials is the provider's.", ask: ask{user: "editor", verb: "delete", group: "storeplane.example.com", resource: "providerconfigusages", namespace: "shop"}},
		"Packages":           {reason: "Claiming needs no right in the cluster.", ask: ask{user: "editor", verb: "get", group: "pkg.crossplane.io", resource: "functions"}},
		"Usages":             {reason: "Deletion protection is taken off in the claim.", ask: ask{user: "editor", verb: "delete", group: "protection.crossplane.io", resource: "usages", namespace: "shop"}},
		"ViewerUsages":       {reason: "A plan of a deletion needs to know what protects a claim.", ask: ask{user: "viewer", verb: "get", group: "protection.crossplane.io", resource: "usages", namespace: "shop"}, want: true},
		"ViewerRoles":        {reason: "A plan compares the Roles that a claim composes, by their names.", ask: ask{user: "viewer", verb: "get", group: "rbac.authorization.k8s.io", resource: "roles", namespace: "shop"}, want: true},
		"ViewerBindings":     {reason: "Which users have access to a namespace is no team's to list.", ask: ask{user: "viewer", verb: "list", group: "rbac.authorization.k8s.io", resource: "rolebindings", namespace: "shop"}},
		"ViewerLooks":        {reason: "Who may look at a namespace sees its claims.", ask: ask{user: "viewer", verb: "list", group: "platform.example.com", resource: "ecommerceplatforms", namespace: "shop"}, want: true},
		"ViewerClaims":       {reason: "And makes none.", ask: ask{user: "viewer", verb: "create", group: "platform.example.com", resource: "ecommerceplatforms", namespace: "shop"}},
		"ViewerSecrets":      {reason: "And reads no passwords.", ask: ask{user: "viewer", verb: "get", resource: "secrets", namespace: "shop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: tc.ask.user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: tc.ask.verb, Group: tc.ask.group, Resource: tc.ask.resource, Subresource: tc.ask.subresource, Namespace: tc.ask.namespace,
				},
			}}
			if err := c.Create(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if r.Status.Allowed != tc.want {
				t.Errorf("%s\n%+v: want allowed %t, got %t: %s", tc.reason, tc.ask, tc.want, r.Status.Allowed, r.Status.Reason)
			}
		})
	}
}

// installTeam applies the roles, binds the built-in ones to two users in namespace shop, and
// waits until the rules are aggregated into the built-in roles.
func installTeam(t *testing.T, c client.Client) {
	t.Helper()
	if err := plane.Apply(t.Context(), c, "../../package/install/team-roles.yaml"); err != nil {
		t.Fatal(err)
	}
	create := func(o client.Object) {
		t.Helper()
		if err := plane.Create(t.Context(), c, o); err != nil {
			t.Fatal(err)
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for user, role := range map[string]string{"editor": "edit", "viewer": "view"} {
		create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
		planetest.Eventually(t, time.Minute, role+" has the rules", func() error {
			r := &rbacv1.ClusterRole{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: role}, r); err != nil {
				return err
			}
			if _, ok := grants(r.Rules)["platform.example.com/ecommerceplatforms"]; !ok {
				return fmt.Errorf("it has %v", r.Rules)
			}
			return nil
		})
	}
}
