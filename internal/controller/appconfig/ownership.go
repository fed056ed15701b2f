package appconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
)

// unowned returns the objects that the claim which owns the AppConfig does not own: they were left
// behind together with the AppConfig, and a claim of the same name has adopted that.
func (x existing) unowned(a *configv1.AppConfig) []*metav1.PartialObjectMetadata {
	owner := metav1.GetControllerOf(a)
	if owner == nil {
		return nil
	}
	var out []*metav1.PartialObjectMetadata
	for _, k := range []struct {
		kind    string
		objects map[string]*metav1.PartialObjectMetadata
	}{{"ConfigMap", x.configs}, {"Secret", x.secrets}} {
		for _, name := range slices.Sorted(maps.Keys(k.objects)) {
			m := k.objects[name]
			if !slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID }) {
				m = m.DeepCopy()
				m.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: k.kind}
				out = append(out, m)
			}
		}
	}
	return out
}

// own makes the claim that owns the AppConfig an owner of objects. The claim is read first: one
// that is being deleted may be about to leave the objects behind, and objects whose owner is gone
// are garbage-collected.
func (e *external) own(ctx context.Context, a *configv1.AppConfig, objects []*metav1.PartialObjectMetadata) error {
	owner := metav1.GetControllerOf(a)
	if owner == nil || len(objects) == 0 {
		return nil
	}
	claim := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind}}
	found, err := e.kube.Find(ctx, a.Namespace, owner.Name, claim)
	if err != nil || !found || claim.UID != owner.UID || claim.DeletionTimestamp != nil {
		return err
	}
	var errs []error
	for _, m := range objects {
		errs = append(errs, e.ownOne(ctx, a, m))
	}
	return errors.Join(errs...)
}

func (e *external) ownOne(ctx context.Context, a *configv1.AppConfig, m *metav1.PartialObjectMetadata) error {
	next := m.DeepCopy()
	next.OwnerReferences = append(next.OwnerReferences, meta(a, m.Name).OwnerReferences...)
	if err := e.kube.Client.Patch(ctx, next, client.MergeFrom(m), kube.Owner); err != nil && client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot own %s %s/%s: %w", m.Kind, m.Namespace, m.Name, err)
	}
	return nil
}
