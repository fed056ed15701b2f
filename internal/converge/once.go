package converge

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Once calls the function once for a claim and what is observed of it, and
// returns what `crossplane composition render` prints: the claim's references
// and status, then what is composed of it, sorted by component.
//
// The observed objects need the annotation with their component's name that
// Crossplane gives them.
func (s *Simulator) Once(ctx context.Context, claim *unstructured.Unstructured, observed []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if err := s.Schemas.Validate(claim); err != nil {
		return nil, err
	}
	live, err := s.Schemas.Default(claim)
	if err != nil {
		return nil, err
	}
	w := newWorld(s.Cluster)
	root := w.create(live)
	for _, u := range observed {
		component := u.GetAnnotations()[xcrd.AnnotationKeyCompositionResourceName]
		if component == "" {
			return nil, fmt.Errorf("cannot observe %s/%s: it has no annotation %s", u.GetKind(), u.GetName(), xcrd.AnnotationKeyCompositionResourceName)
		}
		w.objects = append(w.objects, &object{owner: root, component: component, rendered: u, live: u})
	}

	p := &play{Simulator: s, world: w}
	rsp, err := p.call(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("cannot compose %s: %w", root.ref(), err)
	}
	if msg := refusal(rsp); msg != "" {
		return nil, &RefusedError{Claim: root.ref(), Message: msg}
	}
	desired, err := render(root.live, rsp)
	if err != nil {
		return nil, fmt.Errorf("cannot compose %s: %w", root.ref(), err)
	}
	status, err := desiredStatus(rsp)
	if err != nil {
		return nil, fmt.Errorf("cannot compose %s: %w", root.ref(), err)
	}

	xr := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	xr.SetGroupVersionKind(live.GroupVersionKind())
	xr.SetNamespace(live.GetNamespace())
	xr.SetName(live.GetName())
	// The reconciler of render no longer has the claim's generation when it sets the conditions
	// after the first one.
	fresh := conditionsOf(rsp, 0)
	fresh[0] = conditionsOf(rsp, root.live.GetGeneration())[0]
	writeConditions(xr, fresh)
	if err := p.Schemas.ValidateStatus(xrWithSpec(xr, live)); err != nil {
		return nil, fmt.Errorf("cannot write status of %s: %w", root.ref(), err)
	}
	setReferences(xr, desired)

	out := []*unstructured.Unstructured{xr}
	for _, name := range sortedKeys(desired) {
		out = append(out, desired[name])
	}
	return out, nil
}

// xrWithSpec returns the claim with the status of xr.
func xrWithSpec(xr, claim *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	out.Object["status"] = xr.DeepCopy().Object["status"]
	return out
}

// setReferences sets the references to all composed objects, in Crossplane's order.
func setReferences(xr *unstructured.Unstructured, desired map[string]*unstructured.Unstructured) {
	if len(desired) == 0 {
		return
	}
	type ref struct{ apiVersion, kind, name string }
	refs := make([]ref, 0, len(desired))
	for _, u := range desired {
		refs = append(refs, ref{apiVersion: u.GetAPIVersion(), kind: u.GetKind(), name: u.GetName()})
	}
	slices.SortFunc(refs, func(a, b ref) int {
		return compareStrings(a.apiVersion+a.kind+a.name, b.apiVersion+b.kind+b.name)
	})
	list := make([]any, 0, len(refs))
	for _, r := range refs {
		list = append(list, map[string]any{"apiVersion": r.apiVersion, "kind": r.kind, "name": r.name})
	}
	_ = unstructured.SetNestedSlice(xr.Object, list, "spec", "crossplane", "resourceRefs")
}
