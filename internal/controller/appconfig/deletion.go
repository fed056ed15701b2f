package appconfig

import (
	"context"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
)

// observeDeletion finds the objects that nothing refers to. The others stay, and so do the fields
// in the targets: pods continue to run, and can start again.
func (e *external) observeDeletion(ctx context.Context, a *configv1.AppConfig) (managed.ExternalObservation, error) {
	deleting(a)
	x, err := e.existing(ctx, a)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	e.existed = x
	application := a.Spec.ForProvider.Application
	stable, key := appconfig.StableName(application), appconfig.KeyName(application)
	names := x.bundles(application)
	for _, n := range []string{stable, key} {
		if x.configs[n] != nil || x.secrets[n] != nil {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return managed.ExternalObservation{}, nil
	}
	used, err := e.referred(ctx, a.Namespace, names)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if e.garbage = e.objectsOf(a.Namespace, names, used); len(e.garbage) > 0 {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	if kept := sets.List(sets.KeySet(used).Intersection(sets.New(names...))); len(kept) > 0 {
		e.record.Event(a, event.Normal(configv1.ReasonBundlesKept, "Bundles in use are retained: "+strings.Join(kept, ", ")))
	}
	return managed.ExternalObservation{}, nil
}

// Delete deletes the objects that nothing refers to.
func (e *external) Delete(ctx context.Context, _ resource.Managed) (managed.ExternalDelete, error) {
	for _, o := range e.garbage {
		if err := e.kube.Remove(ctx, o); err != nil {
			return managed.ExternalDelete{}, err
		}
	}
	return managed.ExternalDelete{}, nil
}
