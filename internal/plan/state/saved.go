// Package state reads what a plan needs of a cluster: from the cluster, or from objects
// that were saved.
package state

import (
	"cmp"
	"context"
	"maps"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/plan"
)

// Saved objects of a cluster, as Export writes them, or as kubectl get prints them with
// their managed fields. None are an empty cluster.
type Saved struct {
	objects []*unstructured.Unstructured
	hidden  map[string]bool
}

var _ plan.State = &Saved{}

// NewSaved state of objects.
func NewSaved(objects []*unstructured.Unstructured) *Saved {
	s := &Saved{objects: objects, hidden: map[string]bool{}}
	for _, claim := range objects {
		for _, r := range referencesOf(claim) {
			if !s.has(r.kind, claim.GetNamespace(), r.name) {
				s.hidden[r.kind] = true
			}
		}
	}
	return s
}

func (s *Saved) has(kind, namespace, name string) bool {
	return slices.ContainsFunc(s.objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetNamespace() == namespace && u.GetName() == name
	})
}

// Tree implements plan.State.
func (s *Saved) Tree(_ context.Context, claim plan.Object) ([]*unstructured.Unstructured, error) {
	i := slices.IndexFunc(s.objects, func(u *unstructured.Unstructured) bool {
		return u.GroupVersionKind() == schema.FromAPIVersionAndKind(claim.APIVersion, claim.Kind) && u.GetNamespace() == claim.Namespace && u.GetName() == claim.Name
	})
	if i < 0 {
		return nil, nil
	}
	return s.below(s.objects[i]), nil
}

// Claims implements plan.State.
func (s *Saved) Claims(_ context.Context, kinds []schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, u := range s.objects {
		if slices.Contains(kinds, u.GroupVersionKind()) && metav1.GetControllerOf(u) == nil && (namespace == "" || u.GetNamespace() == namespace) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, byName)
	return out, nil
}

func byName(a, b *unstructured.Unstructured) int {
	return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// below a claim: itself, and what it controls.
func (s *Saved) below(claim *unstructured.Unstructured) []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{claim}
	for _, u := range s.objects {
		if by := metav1.GetControllerOf(u); by != nil && by.UID == claim.GetUID() && claim.GetUID() != "" {
			out = append(out, s.below(u)...)
		}
	}
	return out
}

// Fetch implements plan.State.
func (s *Saved) Fetch(_ context.Context, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, u := range s.objects {
		if converge.Selects(sel, u) {
			out = append(out, u)
		}
	}
	return out, nil
}

// own are the groups of Storeplane's own kinds, which every cluster with claims serves.
var own = map[string]bool{"backup.example.com": true, "config.example.com": true, "storeplane.example.com": true}

// Serves implements plan.State. Of other kinds it is known where an object of one was saved.
func (s *Saved) Serves(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	return own[kind.Group] || slices.ContainsFunc(s.objects, func(u *unstructured.Unstructured) bool { return u.GroupVersionKind() == kind }), nil
}

// Unknown implements plan.State.
func (s *Saved) Unknown() []string {
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(s.hidden)) {
		out = append(out, unread(kind, "were not saved"))
	}
	return out
}

// Hides implements plan.State.
func (s *Saved) Hides(kind string) bool { return s.hidden[kind] }
