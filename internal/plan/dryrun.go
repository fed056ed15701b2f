package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storeplane/storeplane/internal/fieldowner"
)

// A DryRun applies an object on the API server as a field manager, without storing it: by a merge
// patch of what is live, which also removes fields, or on the server where live is nil. The error
// is a RejectedError where the API server refuses the object, and an UntriedError where it neither
// accepts nor refuses it.
type DryRun func(ctx context.Context, manager string, live, u *unstructured.Unstructured) error

// An UntriedError is why the API server neither accepts nor refuses objects of a kind.
type UntriedError struct{ Why string }

func (e *UntriedError) Error() string { return e.Why }

// A RejectedError is why the API server refuses an object.
type RejectedError struct {
	Message string

	// Missing is an object that does not exist and without which the API server refuses this one.
	// It is empty where there is none.
	Missing Object
}

func (e *RejectedError) Error() string { return e.Message }

// A Rejection is an object that the API server refuses.
type Rejection struct {
	Object Object `json:"object"`

	// Message is that of the API server, an admission policy or a webhook.
	Message string `json:"message"`
}

// claimManager is the field manager of the dry run of a claim itself.
const claimManager = "storeplane-plan"

// dryRun applies the claim and the objects that are created or changed in a dry run: objects as
// Crossplane applies them, and a claim that exists by a patch, as kubectl applies it, since a
// manager that owns no field of it removes none. Secrets are left out: generated ones do not exist
// yet, and existing ones are not sent anywhere.
func (p *Planner) dryRun(ctx context.Context, out *Claim, e *edit, pairs []pair, will objects) error {
	if p.DryRun == nil {
		return nil
	}
	uids := map[types.UID]bool{}
	for _, u := range e.tree {
		uids[u.GetUID()] = true
	}
	created := map[key]bool{}
	for _, c := range pairs {
		if c.Action == Create {
			created[keyOf(c.after)] = true
		}
	}
	untried := map[string]bool{}
	try := func(manager string, live, u *unstructured.Unstructured) error {
		err := p.DryRun(ctx, manager, live, u)
		unknown, rejected := &UntriedError{}, &RejectedError{}
		if errors.As(err, &rejected) && created[rejected.Missing.key()] {
			// The dry run of the missing object stored nothing.
			err = &UntriedError{Why: fmt.Sprintf("%s does not exist yet, for a dry run stores nothing", rejected.Missing)}
		}
		switch {
		case errors.As(err, &unknown):
			if !untried[u.GetKind()] {
				untried[u.GetKind()] = true
				out.Unknown = append(out.Unknown, fmt.Sprintf("whether the API server accepts %s objects: %s", u.GetKind(), unknown.Why))
			}
			return nil
		case errors.As(err, &rejected):
			out.Rejected = append(out.Rejected, Rejection{Object: objectOf(u), Message: rejected.Message})
			return nil
		case err != nil:
			return fmt.Errorf("cannot apply %s in a dry run: %w", objectOf(u), err)
		}
		return nil
	}
	if e.live == nil || len(out.Edits) > 0 {
		var live *unstructured.Unstructured
		if e.live != nil {
			live = applicable(e.live, uids)
		}
		if err := try(claimManager, live, applicable(e.next, uids)); err != nil {
			return err
		}
	}
	for _, c := range pairs {
		applied := will[keyOf(c.either())].applied
		if c.Action == Delete || applied == nil || c.Object.Kind == "Secret" {
			continue
		}
		manager := fieldowner.Manager(c.owner.GetName(), c.owner.GroupVersionKind().GroupKind())
		if err := try(manager, nil, applicable(applied, uids)); err != nil {
			return err
		}
	}
	return nil
}

// applicable returns an object without what only the API server sets, and without references
// to owners that do not exist yet.
func applicable(u *unstructured.Unstructured, uids map[types.UID]bool) *unstructured.Unstructured {
	out := u.DeepCopy()
	owners := slices.DeleteFunc(out.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return !uids[o.UID] })
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "ownerReferences"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	if len(owners) > 0 {
		out.SetOwnerReferences(owners)
	}
	delete(out.Object, "status")
	return out
}
