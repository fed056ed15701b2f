//go:build e2e

package borders

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// usesDatabaseToken acts with the token of a database's pod, as a hostile program in it would.
func usesDatabaseToken(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	if err := ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"); err != nil {
		return err
	}
	account := harness.Field(ground.world.Get("Pod", "own-postgresql-0"), "spec", "serviceAccountName")
	as, err := cluster.As("system:serviceaccount:" + tenantNamespace + ":" + account)
	if err != nil {
		return err
	}
	change := harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"e2e.storeplane.example.com/tried": "true"}}}
	patch := func(kind, name string) error {
		_, err := as.Patch(ctx, kind, tenantNamespace, name, change, metav1.DryRunAll)
		return err
	}
	neighbour := ""
	for _, p := range ground.world.List("Pod") {
		if strings.HasPrefix(p.GetName(), "neighbour-") {
			neighbour = p.GetName()
		}
	}
	if neighbour == "" {
		return errors.New("the neighbour has no pod to attack")
	}
	_, secret := as.Get(ctx, "Secret", tenantNamespace, "neighbour")
	_, secrets := as.List(ctx, "Secret", tenantNamespace, "")
	_, elsewhere := as.List(ctx, "Pod", victimNamespace, "")
	attacks := map[string]error{
		"read a neighbour's Secret": secret, "list Secrets": secrets, "list pods elsewhere": elsewhere,
		"change a neighbour's pod": patch("Pod", neighbour), "change a neighbour's ConfigMap": patch("ConfigMap", "neighbour"),
		"change a neighbour's Deployment": patch("Deployment", "neighbour"), "change its own claim": patch("DatabaseCluster", "own"),
		"make a pod":  create(ctx, as, "{apiVersion: v1, kind: Pod, metadata: {name: evil, namespace: ${NAMESPACE}}, spec: {containers: [{name: a, image: a}]}}", metav1.DryRunAll),
		"make a role": create(ctx, as, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: evil, namespace: ${NAMESPACE}}}", metav1.DryRunAll),
	}
	var errs []error
	for what, err := range attacks {
		errs = append(errs, refused(what, err, "is forbidden"))
	}
	n.Addf("%d attacks", len(attacks)+2)
	// With other labels the pod would count as a neighbour's primary.
	const others = "a database's server changes the label storeplane.example.com/role and annotations of its pods, and nothing else"
	_, err = as.Patch(ctx, "Pod", tenantNamespace, "own-postgresql-0", harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{"app.kubernetes.io/instance": "neighbour"}}}, metav1.DryRunAll)
	errs = append(errs, refused("relabel its pod", err, others))
	// A later database would adopt this ConfigMap and read it as the report of a database with
	// data.
	const next = "{apiVersion: v1, kind: ConfigMap, metadata: {name: next-postgresql-status, namespace: ${NAMESPACE}, annotations: {storeplane.example.com/allow-adoption-by: DatabaseCluster/next}}}"
	errs = append(errs, refused("make another database's report", create(ctx, as, next, metav1.DryRunAll), "a database's server creates the leader lock of its own cluster"))
	// A server's legitimate changes are accepted.
	_, err = as.Patch(ctx, "Pod", tenantNamespace, "own-postgresql-0", harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{"storeplane.example.com/role": "replica"}}}, metav1.DryRunAll)
	return errors.Join(append(errs, err, patch("Pod", "own-postgresql-0"))...)
}

// usesProviderToken acts with the provider's token, as an attacker who has stolen it would.
func usesProviderToken(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	as, err := cluster.As("system:serviceaccount:crossplane-system:storeplane-provider")
	if err != nil {
		return err
	}
	allow := func(value any) error {
		_, err := cluster.Patch(ctx, "Deployment", tenantNamespace, "neighbour", harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"config.example.com/appconfigs": value}}})
		return err
	}
	if err := allow("provider"); err != nil {
		return err
	}
	pod := func(spec string) error {
		patch, err := yaml.YAMLToJSON([]byte("{spec: {template: {spec: " + spec + "}}}"))
		if err != nil {
			return fmt.Errorf("cannot parse %s: %w", spec, err)
		}
		_, err = as.PatchList(ctx, "Deployment", tenantNamespace, "neighbour", string(patch))
		return err
	}
	const fields = "the provider of Storeplane changes environment variables, volumes of ConfigMaps and Secrets, and annotations of pods, and nothing else of a workload"
	var errs []error
	for what, spec := range map[string]string{
		"another image": "{containers: [{name: app, image: evil:v1}]}", "one more container": "{containers: [{name: evil, image: evil:v1}]}",
		"the node's files": "{volumes: [{name: a, hostPath: {path: /}}]}", "another account": "{serviceAccountName: default}",
	} {
		errs = append(errs, refused(what, pod(spec), fields))
	}
	const system = " is of the system, and the provider of Storeplane changes nothing there"
	for _, ns := range []string{"kube-system", "crossplane-system"} {
		text := "{apiVersion: v1, kind: Secret, metadata: {name: evil, namespace: " + ns + "}}"
		errs = append(errs, refused("a Secret of "+ns, create(ctx, as, text, metav1.DryRunAll), "namespace "+ns+system))
	}
	for _, p := range ground.world.List("Pod") {
		if strings.HasPrefix(p.GetName(), "neighbour-") {
			errs = append(errs, refused("delete a pod", as.Delete(ctx, "Pod", tenantNamespace, p.GetName()), "the provider of Storeplane deletes pods of StatefulSets, and no others"))
			break
		}
	}
	// What protects the pods and data of others.
	change := func(kind, name string, p harness.Patch) error {
		_, err := as.Patch(ctx, kind, tenantNamespace, name, p, metav1.DryRunAll)
		return err
	}
	meta := func(field string, value any) harness.Patch {
		return harness.Patch{"metadata": harness.Patch{field: value}}
	}
	const (
		claims = "of a claim, and nothing else"
		others = "the provider of Storeplane creates and changes NetworkPolicies and ServiceAccounts of Backups and Restores, and no others"
	)
	errs = append(errs,
		refused("take a claim's finalizers", change("DatabaseCluster", "own", meta("finalizers", nil)), claims),
		refused("label a claim", change("DatabaseCluster", "own", meta("labels", harness.Patch{"evil": "true"})), claims),
		refused("annotate an account", change("ServiceAccount", "default", meta("annotations", harness.Patch{"eks.amazonaws.com/role-arn": "evil"})), others),
		refused("open a database", change("NetworkPolicy", "own-postgresql", harness.Patch{"spec": harness.Patch{"ingress": []any{harness.Patch{}}}}), others),
		change("DatabaseCluster", "own", meta("annotations", harness.Patch{"storeplane.example.com/tried": "true"})),
	)
	n.Addf("%s", fields)
	// Changes that an AppConfig makes are accepted.
	errs = append(errs, pod("{containers: [{name: app, env: [{name: TITLE, valueFrom: {configMapKeyRef: {name: neighbour, key: mode}}}]}]}"))
	errs = append(errs, allow(nil), refused("a workload that allows no AppConfig", pod("{containers: [{name: app, env: []}], terminationGracePeriodSeconds: 2}"), "the workload names no AppConfig that may change it"))
	return errors.Join(errs...)
}
