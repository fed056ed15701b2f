package converge

import (
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/fieldowner"
)

// existing returns the object with the key of u, or nil.
func existing(all []*unstructured.Unstructured, u *unstructured.Unstructured) *unstructured.Unstructured {
	for _, e := range all {
		if keyOf(e) == keyOf(u) {
			return e
		}
	}
	return nil
}

// admit checks a claim as the API server does when it creates the claim, or updates the old one,
// and returns it as it is stored: with its defaults, and with the next generation if its spec has
// changed.
func (s *Simulator) admit(old, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := s.Schemas.Default(claim)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return live, s.Schemas.Validate(claim)
	}
	// A claim that is written unchanged passes, whatever rule it breaks.
	if !Equal(specOf(old), specOf(claim)) {
		if err := s.Schemas.ValidateUpdate(old, claim); err != nil {
			return nil, err
		}
	}
	before, err := s.Schemas.Default(old)
	if err != nil {
		return nil, err
	}
	live.SetUID(old.GetUID())
	live.SetCreationTimestamp(old.GetCreationTimestamp())
	live.SetGeneration(old.GetGeneration())
	if status, ok := before.Object["status"]; ok {
		live.Object["status"] = status
	}
	if !Equal(specOf(before), specOf(live)) {
		live.SetGeneration(old.GetGeneration() + 1)
	}
	return live, nil
}

// seed adds to the world the existing objects that a claim composes, and those that the claims
// among them compose.
func (w *world) seed(owner *object, all []*unstructured.Unstructured) error {
	for _, u := range all {
		by := metav1.GetControllerOf(u)
		component := u.GetAnnotations()[xcrd.AnnotationKeyCompositionResourceName]
		if by == nil || by.UID != owner.live.GetUID() || component == "" {
			continue
		}
		was, err := lastApplied(owner.live, u)
		if err != nil {
			return fmt.Errorf("cannot read %s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		o := &object{owner: owner, component: component, rendered: was, live: u.DeepCopy(), seeded: true, existed: true}
		o.note()
		w.objects = append(w.objects, o)
		if err := w.seed(o, all); err != nil {
			return err
		}
	}
	return nil
}

// lastApplied returns what Crossplane has applied of an object that a claim composes, by the
// object's managed fields. Without these nothing is known, and no field is found to be removed.
func lastApplied(claim, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s, err := toStruct(u)
	if err != nil {
		return nil, err
	}
	own, ok := fieldowner.Applied(s, fieldowner.Manager(claim.GetName(), claim.GroupVersionKind().GroupKind()))
	if !ok {
		return &unstructured.Unstructured{Object: map[string]any{}}, nil
	}
	return toUnstructured(own)
}
