package state

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/render"
)

// Export returns the installation's settings, the claims of a namespace, or of all where namespace
// is empty, and what these compose, without Secrets.
func (l *Live) Export(ctx context.Context, kinds []schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	out, err := l.Fetch(ctx, render.Settings())
	if err != nil {
		return nil, fmt.Errorf("cannot read the installation's settings: %w", err)
	}
	claims, err := l.Claims(ctx, kinds, namespace)
	if err != nil {
		return nil, err
	}
	for _, claim := range claims {
		below, err := l.below(ctx, claim, &sync.Map{})
		if err != nil {
			return nil, fmt.Errorf("cannot read what %s %s/%s composes: %w", claim.GetKind(), claim.GetNamespace(), claim.GetName(), err)
		}
		out = append(append(out, claim), slices.DeleteFunc(below, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Secret" })...)
	}
	return out, nil
}

// Claims implements plan.State.
func (l *Live) Claims(ctx context.Context, kinds []schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, kind := range kinds {
		resource, err := l.resource(kind, namespace)
		if err != nil {
			return nil, err
		}
		if resource == nil {
			continue
		}
		list, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot list claims of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			if metav1.GetControllerOf(&list.Items[i]) == nil {
				out = append(out, &list.Items[i])
			}
		}
	}
	slices.SortFunc(out, byName)
	return out, nil
}
