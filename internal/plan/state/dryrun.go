package state

import (
	"context"
	"errors"
	"regexp"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/plan"
)

// denied matches the API server's answers to a user without permission, to apply the object or to
// grant what a Role grants. A refusal by admission has the same code and another message
// (https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/responsewriters/errors.go,
// https://github.com/kubernetes/kubernetes/blob/master/pkg/registry/rbac/validation/rule.go).
var denied = regexp.MustCompile(`is forbidden: (User ".*" cannot (patch|create) resource|user ".*" \(groups=.*\) is attempting to grant RBAC permissions not currently held)`)

// DryRun applies an object as a field manager, and stores nothing. It implements plan.DryRun.
func (l *Live) DryRun(ctx context.Context, manager string, live, u *unstructured.Unstructured) error {
	resource, err := l.resource(u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return err
	}
	if resource == nil {
		return &plan.UntriedError{Why: "the cluster does not serve the kind"}
	}
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	if live == nil {
		_, err = resource.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true, DryRun: []string{metav1.DryRunAll}})
		return judge(u, err)
	}
	patch := client.MergeFrom(live)
	data, err := patch.Data(u)
	if err != nil {
		return err
	}
	// Unknown fields are refused, as kubectl has them refused.
	_, err = resource.Patch(ctx, u.GetName(), patch.Type(), data, metav1.PatchOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	if isGone(u, err) {
		return errGone
	}
	return judge(u, err)
}

// errGone is the error for an object that was deleted after it was read.
var errGone = errors.New("it was deleted while it was planned: plan it again")

// isGone reports whether the API server does not find the object that is to be patched. An object
// that the patch refers to may be missing as well, which is a refusal.
func isGone(u *unstructured.Unstructured, err error) bool {
	status := (kerrors.APIStatus)(nil)
	if !kerrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == u.GetName() && details.Group == u.GroupVersionKind().Group
}

// judge converts an answer of the API server to an error of a DryRun of an object.
func judge(u *unstructured.Unstructured, err error) error {
	status := (kerrors.APIStatus)(nil)
	if !errors.As(err, &status) {
		return err
	}
	message := status.Status().Message
	switch {
	case denied.MatchString(message):
		// The rights that are missing are listed below, one a line.
		line, _, _ := strings.Cut(message, ":\n")
		return &plan.UntriedError{Why: "they may not be applied: " + line}
	case strings.Contains(message, "does not support dry run"):
		return &plan.UntriedError{Why: message}
	case kerrors.IsServerTimeout(err), kerrors.IsTimeout(err), kerrors.IsTooManyRequests(err), kerrors.IsServiceUnavailable(err), kerrors.IsUnauthorized(err):
		return err
	}
	rejected := &plan.RejectedError{Message: message}
	if kerrors.IsNotFound(err) {
		rejected.Missing = missing(u, status.Status().Details)
	}
	return rejected
}

// missing returns what the API server does not find when it is to store an object, by the details
// of its answer. Those name the Role of a RoleBinding as if it were a RoleBinding, so that the
// binding itself is read instead.
func missing(u *unstructured.Unstructured, details *metav1.StatusDetails) plan.Object {
	switch {
	case details != nil && details.Group == "" && details.Kind == "namespaces":
		return plan.Object{APIVersion: "v1", Kind: "Namespace", Name: details.Name}
	case u.GroupVersionKind().GroupKind() == (schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}):
		kind, _, _ := unstructured.NestedString(u.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
		return plan.Object{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind, Namespace: u.GetNamespace(), Name: name}
	}
	return plan.Object{}
}
