//go:build e2e

package platform

import (
	"context"
	"errors"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	// teamUser is a member of an application team. Its only rights are those of Kubernetes' own
	// role edit in the team's namespaces.
	teamUser = "shop-team"

	teamNamespace  = suiteName + "-team"
	otherNamespace = suiteName + "-other"
)

func team() types.Feature {
	return tests.Feature("an application team", teamNamespace, otherNamespace).
		Quick("a team may file, see, change and delete claims in its namespace", teamMay).
		Quick("a team reaches neither another namespace nor what all namespaces share", teamMayNot).
		Feature()
}

// join gives the team the right to edit a namespace.
func join(ctx context.Context, ns string) error {
	return once.Do("team of "+ns, func() error {
		b := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: teamUser},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: teamUser}},
		}
		if _, err := cluster.Kube.RbacV1().RoleBindings(ns).Create(ctx, b, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot bind role edit in namespace %s: %w", ns, err)
		}
		// The API server applies the role a moment later.
		as, err := cluster.As(teamUser)
		if err != nil {
			return err
		}
		err = wait.For(func(ctx context.Context) (bool, error) {
			return allowed(ctx, as, act{"create", "", "pods", "", ns})
		}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
		if err != nil {
			return fmt.Errorf("waited %s for the team's rights in namespace %s: %w", soon, ns, err)
		}
		return nil
	})
}

// act is an action on a resource, in a namespace or, without one, in all of the cluster.
type act struct{ verb, group, resource, subresource, namespace string }

func (a act) String() string {
	return fmt.Sprintf("%s %s.%s/%s in %q", a.verb, a.resource, a.group, a.subresource, a.namespace)
}

// allowed asks the API server whether the user of a client may do something.
func allowed(ctx context.Context, as *harness.Cluster, a act) (bool, error) {
	r := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Namespace: a.namespace,
	}}}
	out, err := as.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot ask whether %s is allowed: %w", a, err)
	}
	return out.Status.Allowed, nil
}

// claimKinds are the resources of all kinds of Storeplane, with their groups.
var claimKinds = map[string]string{
	"ecommerceplatforms": "platform.example.com", "databaseclusters": "apps.example.com", "webapps": "apps.example.com",
	"backups": "backup.example.com", "restores": "backup.example.com", "restoregrants": "backup.example.com", "appconfigs": "config.example.com", "providerconfigs": "storeplane.example.com",
}

// teams creates both namespaces, one of which is the team's, and returns a client of the team.
func teams(ctx context.Context) (*harness.Cluster, error) {
	if err := errors.Join(namespace(ctx, teamNamespace), namespace(ctx, otherNamespace)); err != nil {
		return nil, err
	}
	if err := join(ctx, teamNamespace); err != nil {
		return nil, err
	}
	return cluster.As(teamUser)
}

// webApp returns a WebApp for a namespace.
func webApp(ns string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "WebApp",
		"spec": map[string]any{"image": cluster.Registry + "/shop-frontend:v1"},
	}}
	u.SetName("hello")
	u.SetNamespace(ns)
	return u
}

func teamMay(ctx context.Context, n notes) error {
	as, err := teams(ctx)
	if err != nil {
		return err
	}
	var errs []error
	asked := 0
	for resource, group := range claimKinds {
		for _, verb := range []string{"create", "get", "list", "watch", "update", "patch", "delete"} {
			a := act{verb, group, resource, "", teamNamespace}
			ok, err := allowed(ctx, as, a)
			if err != nil {
				return err
			}
			if asked++; !ok {
				errs = append(errs, fmt.Errorf("the team may not %s", a))
			}
		}
	}
	n.Addf("%d rights", asked)

	// Check the rights in practice too.
	w, err := cluster.Watch(ctx, teamNamespace)
	if err != nil {
		return err
	}
	defer w.Stop()
	if _, err := as.Create(ctx, webApp(teamNamespace)); err != nil {
		return errors.Join(append(errs, err)...)
	}
	if _, err := as.Patch(ctx, "WebApp", teamNamespace, "hello", harness.Patch{"spec": harness.Patch{"replicas": 2}}); err != nil {
		errs = append(errs, err)
	}
	// The team may read what the claim composed.
	err = w.Await(ctx, settled, "the Deployment of WebApp hello", func() (bool, string) {
		return w.Get("Deployment", "hello-web") != nil, w.Claim("WebApp", "hello").String()
	})
	if err == nil {
		_, err = as.Get(ctx, "Deployment", teamNamespace, "hello-web")
	}
	errs = append(errs, err)
	if _, err := as.List(ctx, "WebApp", teamNamespace, ""); err != nil {
		errs = append(errs, err)
	}
	if err := as.Delete(ctx, "WebApp", teamNamespace, "hello"); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, w.AwaitGone(ctx, settled, "WebApp", "hello"))...)
}

func teamMayNot(ctx context.Context, n notes) error {
	as, err := teams(ctx)
	if err != nil {
		return err
	}
	acts := []act{
		{"get", "", "secrets", "", otherNamespace},
		{"list", "", "secrets", "", otherNamespace},
		{"list", "", "secrets", "", ""},
		{"get", "", "secrets", "", "crossplane-system"},
		{"create", "", "pods", "exec", otherNamespace},
		{"list", "", "pods", "", "crossplane-system"},
		{"get", "apiextensions.crossplane.io", "environmentconfigs", "", ""},
		{"update", "apiextensions.crossplane.io", "environmentconfigs", "", ""},
		{"update", "apiextensions.crossplane.io", "compositions", "", ""},
		{"create", "pkg.crossplane.io", "functions", "", ""},
		{"create", "storeplane.example.com", "clusterproviderconfigs", "", ""},
		{"update", "storeplane.example.com", "clusterproviderconfigs", "", ""},
		{"create", "rbac.authorization.k8s.io", "clusterroles", "", ""},
		{"update", "rbac.authorization.k8s.io", "clusterroles", "", ""},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""},
		{"create", "rbac.authorization.k8s.io", "rolebindings", "", teamNamespace},
		{"update", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", ""},
		{"update", "", "namespaces", "", ""},
	}
	for resource, group := range claimKinds {
		for _, verb := range []string{"create", "get", "list", "patch", "delete"} {
			acts = append(acts, act{verb, group, resource, "", otherNamespace}, act{verb, group, resource, "", ""})
		}
		// Only controllers write the status of a claim.
		acts = append(acts, act{"patch", group, resource, "status", teamNamespace})
	}
	var errs []error
	for _, a := range acts {
		ok, err := allowed(ctx, as, a)
		if err != nil {
			return err
		}
		if ok {
			errs = append(errs, fmt.Errorf("the team may %s", a))
		}
	}
	n.Addf("%d rights", len(acts))

	// Check the rights in practice too.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, StringData: map[string]string{"a": "b"}}
	if _, err := cluster.Kube.CoreV1().Secrets(otherNamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create a Secret: %w", err)
	}
	_, got := as.Get(ctx, "Secret", otherNamespace, "theirs")
	_, filed := as.Create(ctx, webApp(otherNamespace))
	_, set := as.Patch(ctx, "EnvironmentConfig", "", "storeplane", harness.Patch{"data": harness.Patch{}})
	for what, err := range map[string]error{"read a Secret of another namespace": got, "file a claim in another namespace": filed, "change the settings": set} {
		if !apierrors.IsForbidden(err) {
			errs = append(errs, fmt.Errorf("want the team's try to %s to be forbidden, got: %w", what, err))
		}
	}
	return errors.Join(errs...)
}
