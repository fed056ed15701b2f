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

// dryRun applies the claim and the objects that are created or changed in a dry run.
func (p *Planner) dryRun(ctx context.Context, out *Claim, e *edit, pairs []pair, will objects) error {
	if p.DryRun == nil {
		return nil
	}
	created := map[key]bool{}
	for _, c := range pairs {
		if c.Action == Create {
			created[keyOf(c.after)] = true
		}
	}
	untried := map[string]bool{}
	for _, a := range applications(out, e, pairs, will) {
		err := p.DryRun(ctx, a.manager, a.live, a.object)
		unknown, rejected := &UntriedError{}, &RejectedError{}
		if errors.As(err, &rejected) {
			switch missing := rejected.Missing; {
			case missing.Kind == "Namespace" && slices.Contains(p.Namespaces, missing.Name):
				out.Unknown = append(out.Unknown, fmt.Sprintf("whether the API server accepts the claim and its objects: %s does not exist yet, so nothing could be tried", missing))
				return nil
			case created[missing.key()]:
				err = &UntriedError{Why: fmt.Sprintf("%s does not exist yet, for a dry run stores nothing", missing)}
			}
		}
		kind := a.object.GetKind()
		switch {
		case errors.As(err, &unknown):
			if !untried[kind] {
				untried[kind] = true
				out.Unknown = append(out.Unknown, fmt.Sprintf("whether the API server accepts %s objects: %s", kind, unknown.Why))
			}
		case errors.As(err, &rejected):
			out.Rejected = append(out.Rejected, Rejection{Object: objectOf(a.object), Message: rejected.Message})
		case err != nil:
			return fmt.Errorf("cannot apply %s in a dry run: %w", objectOf(a.object), err)
		}
	}
	return nil
}

// application is an object that is applied by a field manager, and what is live of it where that is
// patched.
type application struct {
	manager      string
	live, object *unstructured.Unstructured
}

// applications returns what a dry run applies: objects as Crossplane applies them, and a claim that
// exists as a patch, as kubectl applies it, since a manager that owns no field of it removes none.
// The claim is as it was written, without the defaults of this release. Secrets are left out: generated ones do not exist yet, and existing ones are not sent anywhere.
func applications(out *Claim, e *edit, pairs []pair, will objects) []application {
	uids := map[types.UID]bool{}
	for _, u := range e.tree {
		uids[u.GetUID()] = true
	}
	var all []application
	switch {
	case e.live == nil:
		all = append(all, application{manager: claimManager, object: applicable(e.written, uids)})
	case len(out.Edits) > 0:
		all = append(all, application{manager: claimManager, live: applicable(e.live, uids), object: applicable(e.written, uids)})
	}
	for _, c := range pairs {
		applied := will[keyOf(c.either())].applied
		if c.Action == Delete || applied == nil || c.Object.Kind == "Secret" {
			continue
		}
		manager := fieldowner.Manager(c.owner.GetName(), c.owner.GroupVersionKind().GroupKind())
		all = append(all, application{manager: manager, object: applicable(applied, uids)})
	}
	return all
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
