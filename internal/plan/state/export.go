package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

// Export what the cluster has of the claims of a namespace, or of all namespaces where it
// is empty: the installation's settings, each claim, and what it composes, less the Secrets.
func (l *Live) Export(ctx context.Context, schemas xrd.Schemas, namespace string) ([]*unstructured.Unstructured, error) {
	out, err := l.Fetch(ctx, render.Settings())
	if err != nil {
		return nil, fmt.Errorf("cannot read the installation's settings: %w", err)
	}
	kinds := slices.SortedFunc(maps.Keys(schemas), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.Kind, b.Kind) })
	for _, kind := range kinds {
		claims, err := l.claims(ctx, kind, namespace)
		if err != nil {
			return nil, err
		}
		for i := range claims {
			if metav1.GetControllerOf(&claims[i]) != nil {
				continue // It comes with the claim that composes it.
			}
			below, err := l.below(ctx, &claims[i])
			if err != nil {
				return nil, fmt.Errorf("cannot read what %s %s/%s composes: %w", kind.Kind, claims[i].GetNamespace(), claims[i].GetName(), err)
			}
			out = append(append(out, &claims[i]), slices.DeleteFunc(below, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Secret" })...)
		}
	}
	return out, nil
}

func (l *Live) claims(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	resource, err := l.resource(kind, namespace)
	if err != nil || resource == nil {
		return nil, err
	}
	list, err := resource.List(ctx, metav1.ListOptions{})
	if kerrors.IsForbidden(err) {
		return nil, fmt.Errorf("cannot list claims: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list claims of kind %s: %w", kind.Kind, err)
	}
	return list.Items, nil
}
