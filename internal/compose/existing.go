package compose

import (
	"fmt"
	"maps"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
	"github.com/storeplane/storeplane/internal/health"
)

// AllowAdoptionAnnotation on an object that no claim controls allows the claim
// that it names, as "Kind/name", to make the object its own: the claim applies
// it from then on, and deletes it with itself. Whoever may edit the object may
// set it.
const AllowAdoptionAnnotation = "storeplane.example.com/allow-adoption-by"

// What Crossplane writes on all that it composes: the label names the claim, or
// the claim that composed the claim, and the annotation the component
// (RenderComposedResourceMetadata of crossplane/crossplane v2.4.0).
const (
	compositeLabel      = "crossplane.io/composite"
	componentAnnotation = "crossplane.io/composition-resource-name"
)

// ExistingPrefix begins the names under which Crossplane is asked for the
// objects that components would be applied over.
const ExistingPrefix = "existing/"

// standing is what an object that has the name of a component, and is not
// observed as one, is to the claim.
type standing int

const (
	// foreign is the object of someone else. It is never changed.
	foreign standing = iota
	// leaving is an object that is being deleted, or was of an earlier claim of
	// this name and kind, whose objects Kubernetes removes. It is waited for.
	leaving
	// adoptable is the claim's own, was left behind by an earlier claim of this
	// name, or carries AllowAdoptionAnnotation.
	adoptable
)

// standingOf an object that has the name of a component.
func (c *Claim) standingOf(component string, obj *structpb.Struct) standing {
	if health.IsBeingDeleted(obj) {
		return leaving
	}
	if owner := controllerOf(obj); owner != nil {
		switch {
		case owner["uid"].GetStringValue() == c.meta("uid").GetStringValue():
			// Crossplane has applied it and has not seen it yet.
			return adoptable
		case owner["kind"].GetStringValue() == c.Kind() && owner["name"].GetStringValue() == c.Name():
			return leaving
		}
		return foreign
	}
	if annotation(obj, AllowAdoptionAnnotation) == c.Kind()+"/"+c.Name() {
		return adoptable
	}
	if by := label(obj, compositeLabel); annotation(obj, componentAnnotation) == component && (by == c.Name() || by != "" && by == c.Label(compositeLabel)) && c.mayHaveApplied(obj) {
		return adoptable
	}
	return foreign
}

// mayHaveApplied tells whether a claim of this name and kind has applied an object,
// as far as its managed fields say who has: backup tools leave them out. Labels
// alone do not tell a DatabaseCluster's object from one of an EcommercePlatform of
// the same name.
func (c *Claim) mayHaveApplied(obj *structpb.Struct) bool {
	composed := false
	for _, v := range obj.GetFields()["metadata"].GetStructValue().GetFields()["managedFields"].GetListValue().GetValues() {
		switch by := v.GetStructValue().GetFields()["manager"].GetStringValue(); {
		case by == c.manager():
			return true
		case strings.HasPrefix(by, fieldowner.ComposedPrefix):
			composed = true
		}
	}
	return !composed
}

// controllerOf an object: its controller reference, or nil.
func controllerOf(obj *structpb.Struct) map[string]*structpb.Value {
	for _, v := range obj.GetFields()["metadata"].GetStructValue().GetFields()["ownerReferences"].GetListValue().GetValues() {
		if f := v.GetStructValue().GetFields(); f["controller"].GetBoolValue() {
			return f
		}
	}
	return nil
}

func label(obj *structpb.Struct, key string) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["labels"].GetStructValue().GetFields()[key].GetStringValue()
}

// adopt takes what Crossplane has found of what was asked for, and the claim may
// make its own, for observed: passwords are read from it, and what holds data is
// changed as carefully as if the claim had made it.
func (c *Claim) adopt() {
	for requirement, r := range c.required {
		component, ok := strings.CutPrefix(requirement, ExistingPrefix)
		if !ok || c.observed[component] != nil || len(r.GetItems()) == 0 {
			continue
		}
		obj := r.GetItems()[0].GetResource()
		if c.standingOf(component, obj) != adoptable {
			continue
		}
		// Asked for again, also where the intent is about to refuse the claim for
		// what it reads of it: Crossplane gives up on answers that come and go.
		c.Require(requirement, selectorOf(obj, c.Namespace()))
		if c.adopted == nil {
			// The request's own map stays as it is.
			c.adopted, c.observed = map[string]bool{}, maps.Clone(c.observed)
			if c.observed == nil {
				c.observed = map[string]*fnv1.Resource{}
			}
		}
		c.adopted[component], c.observed[component] = true, &fnv1.Resource{Resource: obj}
	}
}

// Existing asks for an object that has the name of a component, for an intent that
// has to know what was left behind before it can say whether the claim is valid:
// one that the claim may adopt is observed from then on. It returns false until
// Crossplane has looked.
func (c *Claim) Existing(component, apiVersion, kind, name string) bool {
	if c.IsComposed(component) {
		return true
	}
	_, fetched := c.Require(ExistingPrefix+component, &fnv1.ResourceSelector{
		ApiVersion: apiVersion, Kind: kind, Namespace: new(c.Namespace()), Match: &fnv1.ResourceSelector_MatchName{MatchName: name},
	})
	return fetched || c.IsReview()
}

// IsComposed tells whether a component exists as the claim's own.
func (c *Claim) IsComposed(component string) bool {
	return c.observed[component] != nil && !c.adopted[component]
}

// checkExisting asks for the objects that would be applied over by what a
// decision applies for the first time. It withholds what waits for one to be
// deleted, and returns ErrPending until Crossplane has looked, else an error of
// the claim where an object is someone else's. At rest it asks for nothing.
func (c *Claim) checkExisting(d *Decision) error {
	var pending error
	var refused []error
	for _, name := range d.First {
		obj := d.Apply[name]
		found, fetched := c.Require(ExistingPrefix+name, selectorOf(obj, c.Namespace()))
		switch {
		case !fetched:
			if !c.IsReview() {
				pending = ErrPending
			}
		case len(found) == 0:
		default:
			switch c.standingOf(name, found[0]) {
			case adoptable:
			case leaving:
				d.wait(name, "Waiting for the deletion of "+titleOf(found[0]))
			case foreign:
				refused = append(refused, c.foreignError(found[0]))
			}
		}
	}
	if pending != nil {
		return pending
	}
	if len(refused) == 0 {
		return nil
	}
	if len(refused) > 1 {
		return &InvalidError{reason: appsv1.ReasonAlreadyExists, text: fmt.Sprintf("%v. %d more objects of others have names of this claim", refused[0], len(refused)-1)}
	}
	return refused[0]
}

// foreignError names an object that is someone else's, and the ways out.
func (c *Claim) foreignError(obj *structpb.Struct) error {
	title := titleOf(obj)
	if owner := controllerOf(obj); owner != nil {
		return &InvalidError{reason: appsv1.ReasonAlreadyExists, text: fmt.Sprintf(
			"%s exists already and belongs to %s %s: choose another name for this claim, or delete that %s",
			title, owner["kind"].GetStringValue(), owner["name"].GetStringValue(), owner["kind"].GetStringValue())}
	}
	return &InvalidError{reason: appsv1.ReasonAlreadyExists, text: fmt.Sprintf(
		"%s exists already and is not part of this claim: choose another name for this claim, delete the object, or let this claim change and own it: kubectl annotate %s %s %s=%s/%s",
		title, resourceOf(obj), nameOf(obj), AllowAdoptionAnnotation, c.Kind(), c.Name())}
}

// titleOf an object, for messages.
func titleOf(obj *structpb.Struct) string {
	return obj.GetFields()["kind"].GetStringValue() + " " + nameOf(obj)
}

func nameOf(obj *structpb.Struct) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
}

// resourceOf is what kubectl calls the kind of an object.
func resourceOf(obj *structpb.Struct) string {
	gk := health.GroupKind(obj)
	return strings.ToLower(strings.TrimSuffix(gk.Kind+"."+gk.Group, "."))
}

// selectorOf one object of a namespace.
func selectorOf(obj *structpb.Struct, namespace string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: obj.GetFields()["apiVersion"].GetStringValue(),
		Kind:       obj.GetFields()["kind"].GetStringValue(),
		Namespace:  &namespace,
		Match:      &fnv1.ResourceSelector_MatchName{MatchName: nameOf(obj)},
	}
}
