//go:build e2e

package appconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/e2e-framework/klient/wait"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

const (
	// policy is the name of the ValidatingAdmissionPolicy that forbids, and of its binding.
	policy = "e2e-appconfig-forbidden"
	// provider is the provider's user name at the API server.
	provider = "system:serviceaccount:crossplane-system:storeplane-provider"
)

// forbid forbids the provider to change one Deployment. It takes a policy, because RBAC cannot
// exclude one object among others that may be changed.
func (g *ground) forbid(ctx context.Context, name string) error {
	// Remove the policy that a killed run has left behind.
	if err := g.allow(ctx); err != nil {
		return err
	}
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": g.namespace}}
	p := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: here,
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					ResourceNames: []string{name},
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Update},
						Rule:       admissionv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
					},
				}},
			},
			MatchConditions: []admissionv1.MatchCondition{{Name: "provider", Expression: fmt.Sprintf("request.userInfo.username == '%s'", provider)}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: "hands off", Reason: new(metav1.StatusReasonForbidden)}},
		},
	}
	api := cluster.Kube.AdmissionregistrationV1()
	if _, err := api.ValidatingAdmissionPolicies().Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create policy %s: %w", policy, err)
	}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(ctx, b, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot bind policy %s: %w", policy, err)
	}
	return g.awaitForbidden(ctx, name)
}

// awaitForbidden waits until the API server applies the policy, which takes a moment.
func (g *ground) awaitForbidden(ctx context.Context, name string) error {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: provider}
	as, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	// It changes nothing: the installation's own policy refuses the provider what it does not need.
	patch := []byte(`{}`)
	err = wait.For(func(ctx context.Context) (bool, error) {
		_, err := as.AppsV1().Deployments(g.namespace).Patch(ctx, name, k8stypes.MergePatchType, patch, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "hands off"), nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("waited %s for policy %s to be in force: %w", soon, policy, err)
	}
	return nil
}

// allow removes the policy.
func (g *ground) allow(ctx context.Context) error {
	api := cluster.Kube.AdmissionregistrationV1()
	err := errors.Join(
		ignoreNotFound(api.ValidatingAdmissionPolicyBindings().Delete(ctx, policy, metav1.DeleteOptions{})),
		ignoreNotFound(api.ValidatingAdmissionPolicies().Delete(ctx, policy, metav1.DeleteOptions{})),
	)
	if err != nil {
		return fmt.Errorf("cannot delete policy %s: %w", policy, err)
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// forbidden checks that the other targets are changed if one may not be, that the status names that
// one, and that it is changed once the policy is removed.
func (g *ground) forbidden(ctx context.Context, n notes) error {
	const app, one, other = "forbidden", "forbidden-one", "forbidden-other"
	was, err := g.serving(ctx, parameters(app, pets(), deployment(one), deployment(other)))
	if err != nil {
		return err
	}
	if err := g.forbid(ctx, one); err != nil {
		return errors.Join(err, g.allow(context.WithoutCancel(ctx)))
	}
	defer func() { _ = g.allow(context.WithoutCancel(ctx)) }()
	if err := g.set(ctx, app, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	err = g.await(ctx, rolled, app, "to say which target it may not change", func(a configv1.AppConfig) bool {
		return is(a, "Ready", corev1.ConditionFalse, "TargetsUnavailable") && strings.Contains(a.GetCondition("Ready").Message, one) &&
			target(a, one).State == configv1.TargetForbidden && target(a, other).State == configv1.TargetUpdated
	})
	if err != nil {
		return err
	}
	next := g.appConfig(app).Status.AtProvider.Bundle
	if err := g.awaitRuns(ctx, soon, "Deployment", other, app, next); err != nil {
		return err
	}
	if have := bundles(g.world.Get("Deployment", one), app); !slices.Equal(have, []string{was}) {
		return fmt.Errorf("%s runs %v though it may not be changed", one, have)
	}
	n.Addf("%s", target(g.appConfig(app), one).Message)
	if err := g.allow(ctx); err != nil {
		return err
	}
	// The provider retries once a minute.
	if _, err := g.awaitGood(ctx, 2*rolled, app); err != nil {
		return err
	}
	return g.awaitRuns(ctx, soon, "Deployment", one, app, next)
}
