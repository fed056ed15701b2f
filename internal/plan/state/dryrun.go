package state

import (
	"context"
	"errors"
	"regexp"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/plan"
)

// denied matches the API server's answer to a user without permission. A refusal by admission has
// the same code and another message
// (https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/responsewriters/errors.go).
var denied = regexp.MustCompile(`is forbidden: User ".*" cannot (patch|create) resource`)

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
		return judge(err)
	}
	patch := client.MergeFrom(live)
	data, err := patch.Data(u)
	if err != nil {
		return err
	}
	// Unknown fields are refused, as kubectl has them refused.
	_, err = resource.Patch(ctx, u.GetName(), patch.Type(), data, metav1.PatchOptions{FieldManager: manager, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	return judge(err)
}

// judge converts an answer of the API server to an error of a DryRun.
func judge(err error) error {
	status := (kerrors.APIStatus)(nil)
	if !errors.As(err, &status) {
		return err
	}
	message := status.Status().Message
	switch {
	case denied.MatchString(message):
		return &plan.UntriedError{Why: "they may not be applied: " + message}
	case strings.Contains(message, "does not support dry run"):
		return &plan.UntriedError{Why: message}
	case kerrors.IsServerTimeout(err), kerrors.IsTimeout(err), kerrors.IsTooManyRequests(err), kerrors.IsServiceUnavailable(err), kerrors.IsUnauthorized(err):
		return err
	}
	return &plan.RejectedError{Message: message}
}
