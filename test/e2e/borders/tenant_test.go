//go:build e2e

package borders

import (
	"context"
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// tenant is a user with the role storeplane-edit in only one namespace.
const tenant = "e2e-borders-tenant"

// join binds the tenant's role and waits until it is in force.
func join(ctx context.Context) error {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: tenant},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "storeplane-edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: tenant}},
	}
	if _, err := cluster.Kube.RbacV1().RoleBindings(tenantNamespace).Create(ctx, b, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot bind role storeplane-edit: %w", err)
	}
	as, err := cluster.As(tenant)
	if err != nil {
		return err
	}
	var last error
	err = wait.For(func(ctx context.Context) (bool, error) {
		last = create(ctx, as, "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: first, namespace: ${NAMESPACE}}, spec: {image: '${REGISTRY}/shop-frontend:v1'}}", metav1.DryRunAll)
		return last == nil, nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithImmediate())
	return errors.Join(last, err)
}

const environmentLabel = "storeplane.example.com/environment"

// leavesProduction tries to leave production: the rules for claims of environment production bind
// all claims in a namespace that is labelled for production.
func leavesProduction(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	label := func(c *harness.Cluster, value any) error {
		_, err := c.Patch(ctx, "Namespace", "", tenantNamespace, harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{environmentLabel: value}}})
		return err
	}
	if err := label(cluster, "production"); err != nil {
		return err
	}
	file := func(environment string) func(context.Context) error {
		return func(ctx context.Context) error {
			return create(ctx, ground.tenant, "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: hello, namespace: ${NAMESPACE}}, spec: {"+environment+" image: '${REGISTRY}/shop-frontend:v1'}}", metav1.DryRunAll)
		}
	}
	wants := ", and namespace " + tenantNamespace + " is for production: set environment: production, or use another namespace"
	errs := []error{
		eventually(ctx, "a claim for development", "environment is development"+wants, file("environment: development,")),
		refused("a claim for nothing", file("")(ctx), "environment is not set"+wants),
		file("environment: production,")(ctx),
		refused("the label is taken off", label(ground.tenant, nil), "is forbidden"),
	}
	n.Addf("environment is development%s", wants)
	errs = append(errs, label(cluster, nil))
	// The API server knows a label a moment after it was written, and the next check files claims.
	errs = append(errs, ground.world.Await(ctx, soon, "claims for nothing to be accepted again", func() (bool, string) {
		err := file("")(ctx)
		return err == nil, fmt.Sprint(err)
	}))
	return errors.Join(errs...)
}

// changesWorkload tries to change the workload of another user by an AppConfig.
func changesWorkload(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	const neighbour, thief = "neighbour", "thief"
	generation := func() int64 {
		return harness.Number(ground.world.Get("Deployment", neighbour), "metadata", "generation")
	}
	err := ground.world.Await(ctx, started, "the neighbour to run", func() (bool, string) {
		return harness.Number(ground.world.Get("Deployment", neighbour), "status", "availableReplicas") == 1, "it does not"
	})
	if err != nil {
		return err
	}
	before := generation()
	err = create(ctx, ground.tenant, `{apiVersion: config.example.com/v1, kind: AppConfig, metadata: {name: thief, namespace: '${NAMESPACE}'}, spec: {forProvider: {
		application: thief, config: {LD_PRELOAD: /tmp/evil.so}, targets: [{kind: Deployment, name: neighbour}]}}}`)
	if err != nil {
		return err
	}
	said := func() string { return harness.ClaimOf(ground.world.Get("AppConfig", thief)).Condition("Ready").Message }
	words := "Deployment neighbour: It does not allow this AppConfig to change it: set its annotation config.example.com/appconfigs: thief"
	err = ground.world.Await(ctx, soon, "the AppConfig to be refused", func() (bool, string) { return strings.Contains(said(), words), said() })
	if err != nil {
		return err
	}
	n.Addf("%s", said())
	if after := generation(); after != before {
		return fmt.Errorf("the neighbour was changed: generation %d, then %d", before, after)
	}
	allow := harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"config.example.com/appconfigs": thief}}}
	if _, err := ground.tenant.Patch(ctx, "Deployment", tenantNamespace, neighbour, allow); err == nil {
		return errors.New("the tenant could annotate the neighbour by itself")
	}
	// A user who may change the workload may also allow the AppConfig to change it.
	if _, err := cluster.Patch(ctx, "Deployment", tenantNamespace, neighbour, allow); err != nil {
		return err
	}
	return ground.world.Await(ctx, soon, "the neighbour to be changed once it says so", func() (bool, string) {
		return generation() > before, said()
	})
}

// namesKinds tries to make Crossplane watch other kinds, each of which could block all claims.
func namesKinds(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	const claim = "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: hello, namespace: ${NAMESPACE}}, spec: {image: '${REGISTRY}/shop-frontend:v1', crossplane: {resourceRefs: [%s]}}}"
	file := func(ref string) error {
		return create(ctx, ground.tenant, fmt.Sprintf(claim, ref), metav1.DryRunAll)
	}
	var errs []error
	for _, kind := range []string{"v1, kind: Node", "v1, kind: Secret", "apiextensions.k8s.io/v1, kind: CustomResourceDefinition"} {
		err := file("{apiVersion: " + kind + ", name: a}")
		errs = append(errs, refused(kind, err, "leave spec.crossplane.resourceRefs out, Crossplane writes it"))
	}
	n.Addf("%d kinds", len(errs))
	// References that a backup tool restores are accepted.
	return errors.Join(append(errs, file("{apiVersion: apps/v1, kind: Deployment, name: hello-web}"))...)
}
