//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	// takenNamespace contains objects with names that an EcommercePlatform needs. In
	// deniedNamespace the API server refuses changes.
	takenNamespace  = "e2e-core-names"
	deniedNamespace = "e2e-core-denied"
)

func takenNames() types.Feature {
	return features.New("names that are taken").
		Assess("a shop takes over no database beside it, unless that one allows it", assess(takesOverNothing, takenNamespace)).
		Assess("a change that the API server refuses leaves a claim not ready, and named", assess(refusedByAPIServer, deniedNamespace)).
		Assess("a shop that is created again finds what its orphans have", assess(findsOrphans, dev.namespace)).
		Feature()
}

// takesOverNothing creates an EcommercePlatform beside a protected database with the name of the
// one that it composes.
func takesOverNothing(ctx context.Context, n notes) error {
	if err := cluster.CreateNamespace(ctx, takenNamespace); err != nil {
		return err
	}
	w, err := cluster.Watch(ctx, takenNamespace)
	if err != nil {
		return err
	}
	database := claimIn(takenNamespace, "apps.example.com/v1", "DatabaseCluster", "own-database", map[string]any{"size": int64(1), "version": "17", "deletionProtection": true})
	if _, err := cluster.Create(ctx, database); err != nil {
		return err
	}
	if err := w.AwaitReady(ctx, started, "DatabaseCluster", "own-database"); err != nil {
		return err
	}
	tier := map[string]any{"image": image("backend", "v1")}
	own := claimIn(takenNamespace, "platform.example.com/v1", "EcommercePlatform", "own", map[string]any{"backend": tier, "frontend": tier, "cache": map[string]any{"enabled": false}})
	if _, err := cluster.Create(ctx, own); err != nil {
		return err
	}
	start := time.Now()
	const said = "DatabaseCluster own-database exists already and is not part of this claim"
	err = w.Await(ctx, soon, fmt.Sprintf("the shop to say %q", said), func() (bool, string) {
		c := w.Claim("EcommercePlatform", "own")
		return strings.Contains(c.Status.Message, said) && c.Condition("Accepted").Reason == "AlreadyExists", c.String()
	})
	if err != nil {
		return err
	}
	n.Addf("refused after %.1fs", time.Since(start).Seconds())
	if err := errors.Join(untouched(w), cluster.Delete(ctx, "EcommercePlatform", takenNamespace, "own"), w.AwaitGone(ctx, settled, "EcommercePlatform", "own"), untouched(w)); err != nil {
		return err
	}

	uid := w.Get("DatabaseCluster", "own-database").GetUID()
	if _, err := cluster.Create(ctx, own); err != nil {
		return err
	}
	allow := harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"storeplane.example.com/allow-adoption-by": "EcommercePlatform/own"}}}
	if _, err := cluster.Patch(ctx, "DatabaseCluster", takenNamespace, "own-database", allow); err != nil {
		return err
	}
	start = time.Now()
	err = w.Await(ctx, settled, "the shop to control the database that allows it", func() (bool, string) {
		db := w.Get("DatabaseCluster", "own-database")
		return db.GetUID() == uid && metav1.GetControllerOf(db) != nil && metav1.GetControllerOf(db).Name == "own", w.Claim("EcommercePlatform", "own").String()
	})
	if err != nil {
		return err
	}
	n.Addf("adopted after %.1fs", time.Since(start).Seconds())
	if err := cluster.Delete(ctx, "EcommercePlatform", takenNamespace, "own"); err != nil {
		return err
	}
	return w.AwaitGone(ctx, settled, "DatabaseCluster", "own-database")
}

// untouched returns an error if the database is gone, has a controller, or is not protected any
// more.
func untouched(w *harness.World) error {
	db := w.Get("DatabaseCluster", "own-database")
	switch {
	case db == nil:
		return errors.New("the database is gone")
	case metav1.GetControllerOf(db) != nil:
		return fmt.Errorf("the database belongs to %s", metav1.GetControllerOf(db).Name)
	case !isProtected(db):
		return errors.New("the database is not protected any more")
	}
	return nil
}

func isProtected(db *unstructured.Unstructured) bool {
	protected, _, err := unstructured.NestedBool(db.Object, "spec", "deletionProtection")
	return err == nil && protected
}

// claimIn returns a claim in a namespace.
func claimIn(namespace, apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// refusedByAPIServer makes the API server refuse a change of a Service as invalid. A Service counts
// as healthy if it exists.
func refusedByAPIServer(ctx context.Context, n notes) (err error) {
	if err := cluster.CreateNamespace(ctx, deniedNamespace); err != nil {
		return err
	}
	w, err := cluster.Watch(ctx, deniedNamespace)
	if err != nil {
		return err
	}
	web := claimIn(deniedNamespace, "apps.example.com/v1", "WebApp", "web", map[string]any{"image": image("frontend", "v1"), "env": []any{map[string]any{"name": "BACKEND_URL", "value": "http://none:8080"}}})
	if _, err := cluster.Create(ctx, web); err != nil {
		return err
	}
	if err := w.AwaitReady(ctx, started, "WebApp", "web"); err != nil {
		return err
	}
	undo, err := denyService(ctx, "web-web")
	defer func() { err = errors.Join(err, undo(context.WithoutCancel(ctx))) }()
	if err != nil {
		return err
	}
	start := time.Now()
	edited, err := cluster.Patch(ctx, "WebApp", deniedNamespace, "web", harness.Patch{"spec": harness.Patch{"port": 9090}})
	if err != nil {
		return err
	}
	const said = "The API server refuses it as invalid"
	err = w.Await(ctx, settled, fmt.Sprintf("the claim to say %q", said), func() (bool, string) {
		c := w.Claim("WebApp", "web")
		return strings.Contains(c.Status.Message, said) && !c.Is("Ready"), c.String()
	})
	if err != nil {
		return err
	}
	n.Addf("said after %.1fs", time.Since(start).Seconds())
	// The observedGeneration of the condition is not compared: Crossplane sets it to the generation
	// that its write of the status returns, which is newer than the one that the function received
	// if the claim was changed meanwhile.
	for _, v := range w.History("WebApp", "web") {
		if c := harness.ClaimOf(v.Object); c.Metadata.Generation >= edited.GetGeneration() && c.Is("Ready") && c.Status.ReadyGeneration == c.Metadata.Generation {
			return fmt.Errorf("a claim whose change was refused was called Ready: %s", c)
		}
	}
	if err := undo(ctx); err != nil {
		return err
	}
	start = time.Now()
	err = w.Await(ctx, settled, "the Service to take the change", func() (bool, string) {
		ports, err := harness.List(w.Get("Service", "web-web"), "spec", "ports")
		return err == nil && len(ports) == 1 && fmt.Sprint(ports[0]["port"]) == "9090", w.Claim("WebApp", "web").String()
	})
	n.Addf("taken %.1fs after it was allowed", time.Since(start).Seconds())
	return errors.Join(err, cluster.Delete(ctx, "WebApp", deniedNamespace, "web"))
}

// denyService makes the API server refuse changes of a Service as invalid. The returned function
// allows them again.
func denyService(ctx context.Context, name string) (func(context.Context) error, error) {
	const policy = "e2e-core-names"
	api := cluster.Kube.AdmissionregistrationV1()
	undo := func(ctx context.Context) error {
		all := metav1.ListOptions{LabelSelector: harness.Label + "=" + policy}
		return errors.Join(
			api.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
			api.ValidatingAdmissionPolicies().DeleteCollection(ctx, metav1.DeleteOptions{}, all),
		)
	}
	if err := undo(ctx); err != nil {
		return undo, err
	}
	meta := metav1.ObjectMeta{Name: policy, Labels: map[string]string{harness.Label: policy}}
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": deniedNamespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
				},
			}},
		},
		Validations: []admissionv1.Validation{{Expression: "object.spec.ports == oldObject.spec.ports", Message: "the ports stay", Reason: new(metav1.StatusReasonInvalid)}},
	}}
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return undo, fmt.Errorf("cannot create policy %s: %w", policy, err)
	}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, b, metav1.CreateOptions{}); err != nil {
		return undo, fmt.Errorf("cannot bind policy %s: %w", policy, err)
	}
	// The API server applies a policy a moment later.
	change := harness.Patch{"spec": harness.Patch{"ports": []any{harness.Patch{"name": "other", "port": 1}}}}
	for ctx.Err() == nil {
		_, err := cluster.Patch(ctx, "Service", deniedNamespace, name, change, metav1.DryRunAll)
		if err != nil {
			return undo, nil //nolint:nilerr // the refusal is what is waited for
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return undo, context.Cause(ctx)
}

// findsOrphans deletes a claim but none of its objects, and creates it again from its file, as a
// backup tool or GitOps does.
func findsOrphans(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	id, err := dev.order(ctx, "an-orphans-customer")
	if err != nil {
		return err
	}
	before, secrets, was := uids(dev), secretsOf(dev.world), dev.world.Get("EcommercePlatform", claimName)
	if err := cluster.Orphan(ctx, dev.world, "EcommercePlatform", dev.namespace, claimName); err != nil {
		return err
	}
	if err := dev.world.AwaitGone(ctx, settled, "EcommercePlatform", claimName); err != nil {
		return err
	}
	start := time.Now()
	spec, _, err := unstructured.NestedMap(was.Object, "spec")
	if err != nil {
		return err
	}
	delete(spec, "crossplane")
	if _, err := cluster.Create(ctx, claimIn(dev.namespace, was.GetAPIVersion(), was.GetKind(), claimName, spec)); err != nil {
		return err
	}
	if err := dev.ready(ctx, started); err != nil {
		return err
	}
	n.Addf("Ready again after %.1fs", time.Since(start).Seconds())
	var errs []error
	if after := uids(dev); fmt.Sprint(after) != fmt.Sprint(before) {
		errs = append(errs, fmt.Errorf("the pods were %v, are %v", before, after))
	}
	for name, data := range secretsOf(dev.world) {
		if want, ok := secrets[name]; ok && data != want {
			errs = append(errs, fmt.Errorf("Secret %s has other values than before", name))
		}
	}
	return errors.Join(append(errs, dev.serves(ctx, "an-orphans-customer", id))...)
}

// secretsOf returns the data of the Secrets in a namespace, by name.
func secretsOf(w *harness.World) map[string]string {
	out := map[string]string{}
	for _, s := range w.List("Secret") {
		out[s.GetName()] = fmt.Sprint(s.Object["data"])
	}
	return out
}
