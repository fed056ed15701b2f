// Package state reads what a plan needs of a cluster: from the cluster itself, or from saved
// objects.
package state

import (
	"cmp"
	"context"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/plan"
)

// Saved is the state of a cluster from saved objects, as Export returns them, or as kubectl get
// prints them with their managed fields. Without objects the cluster is empty.
type Saved struct {
	objects []*unstructured.Unstructured
	byKind  map[schema.GroupVersionKind][]*unstructured.Unstructured
	byName  map[hidden][]*unstructured.Unstructured
	byOwner map[types.UID][]*unstructured.Unstructured

	// secrets is true if a claim has Secrets that were not saved.
	secrets bool
}

var _ plan.State = &Saved{}

// NewSaved returns the state that objects describe.
func NewSaved(objects []*unstructured.Unstructured) *Saved {
	s := &Saved{
		objects: objects,
		byKind:  map[schema.GroupVersionKind][]*unstructured.Unstructured{},
		byName:  map[hidden][]*unstructured.Unstructured{},
		byOwner: map[types.UID][]*unstructured.Unstructured{},
	}
	for _, u := range objects {
		s.byKind[u.GroupVersionKind()] = append(s.byKind[u.GroupVersionKind()], u)
		n := hidden{kind: u.GetKind(), namespace: u.GetNamespace(), name: u.GetName()}
		s.byName[n] = append(s.byName[n], u)
		if by := metav1.GetControllerOf(u); by != nil && by.UID != "" && by.UID != u.GetUID() {
			s.byOwner[by.UID] = append(s.byOwner[by.UID], u)
		}
	}
	for _, claim := range objects {
		for _, r := range referencesOf(claim) {
			// Export leaves out Secrets only.
			if r.kind == "Secret" && len(s.byName[hidden{kind: r.kind, namespace: claim.GetNamespace(), name: r.name}]) == 0 {
				s.secrets = true
			}
		}
	}
	return s
}

// Tree implements plan.State.
func (s *Saved) Tree(_ context.Context, claim plan.Object) ([]*unstructured.Unstructured, error) {
	for _, u := range s.byName[hidden{kind: claim.Kind, namespace: claim.Namespace, name: claim.Name}] {
		if u.GetAPIVersion() == claim.APIVersion {
			return s.below(u), nil
		}
	}
	return nil, nil
}

// Claims implements plan.State.
func (s *Saved) Claims(_ context.Context, kinds []schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, kind := range kinds {
		for _, u := range s.byKind[kind] {
			if metav1.GetControllerOf(u) == nil && (namespace == "" || u.GetNamespace() == namespace) {
				out = append(out, u)
			}
		}
	}
	slices.SortFunc(out, byName)
	return out, nil
}

func byName(a, b *unstructured.Unstructured) int {
	return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// below returns a claim and the objects below it that it controls.
func (s *Saved) below(claim *unstructured.Unstructured) []*unstructured.Unstructured {
	out := []*unstructured.Unstructured{claim}
	for _, u := range s.byOwner[claim.GetUID()] {
		out = append(out, s.below(u)...)
	}
	return out
}

// Fetch implements plan.State.
func (s *Saved) Fetch(_ context.Context, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	candidates := s.byKind[schema.FromAPIVersionAndKind(sel.GetApiVersion(), sel.GetKind())]
	if name := sel.GetMatchName(); name != "" {
		candidates = s.byName[hidden{kind: sel.GetKind(), namespace: sel.GetNamespace(), name: name}]
	}
	var out []*unstructured.Unstructured
	for _, u := range candidates {
		if converge.Selects(sel, u) {
			out = append(out, u)
		}
	}
	return out, nil
}

// own are the groups of Storeplane's own kinds, which every cluster with claims serves.
var own = map[string]bool{backupv1.GroupVersion.Group: true, configv1.GroupVersion.Group: true, storeplanev1.GroupVersion.Group: true}

// Serves implements plan.State. Kinds of other groups count as served where an object was saved.
func (s *Saved) Serves(_ context.Context, kind schema.GroupVersionKind) (bool, error) {
	return own[kind.Group] || len(s.byKind[kind]) > 0, nil
}

// Unknown implements plan.State.
func (s *Saved) Unknown() []string {
	if s.secrets {
		return []string{unread("Secret", "were not saved")}
	}
	return nil
}

// Hides implements plan.State.
func (s *Saved) Hides(o plan.Object) bool {
	return s.secrets && o.Kind == "Secret" && len(s.byName[hidden{kind: o.Kind, namespace: o.Namespace, name: o.Name}]) == 0
}

// HidesSecrets implements plan.State.
func (s *Saved) HidesSecrets() bool { return s.secrets }
