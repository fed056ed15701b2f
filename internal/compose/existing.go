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

// AllowAdoptionAnnotation on an object that no claim controls allows the claim that it names, as
// "Kind/name", to adopt the object: the claim applies the object from then on, and deletes it when
// the claim is deleted. Every user who may edit the object may set it.
const AllowAdoptionAnnotation = "storeplane.example.com/allow-adoption-by"

// Metadata that Crossplane writes on all that it composes: the label names the claim, or the claim
// that composed the claim, and the annotation the component (RenderComposedResourceMetadata of
// crossplane/crossplane v2.4.0).
const (
	compositeLabel = "crossplane.io/composite"

	// ComponentAnnotation names the component that an object was composed for.
	ComponentAnnotation = "crossplane.io/composition-resource-name"
)

// ExistingPrefix begins the names under which objects are required that components would be applied
// over.
const ExistingPrefix = "existing/"

// standing is the relation to the claim of an object that has the name of a component and is not
// observed as one.
type standing int

const (
	// foreign is an object of another owner. It is never changed.
	foreign standing = iota
	// leaving is an object that is being deleted, or that belongs to an earlier claim of this name
	// and kind, whose objects Kubernetes removes. The claim waits for that.
	leaving
	// adoptable is an object that belongs to the claim already, was left behind by an earlier claim
	// of this name, or carries AllowAdoptionAnnotation.
	adoptable
)

// standingOf returns the standing of an object that has the name of a component.
func (c *Claim) standingOf(component string, obj *structpb.Struct) standing {
	if health.IsBeingDeleted(obj) {
		return leaving
	}
	if owner := controllerOf(obj); owner != nil {
		switch {
		case owner["uid"].GetStringValue() == c.meta("uid").GetStringValue():
			// Crossplane has applied the object, but does not report it as observed yet.
			return adoptable
		case owner["kind"].GetStringValue() == c.Kind() && owner["name"].GetStringValue() == c.Name():
			return leaving
		}
		return foreign
	}
	if annotation(obj, AllowAdoptionAnnotation) == c.Kind()+"/"+c.Name() {
		return adoptable
	}
	if by := label(obj, compositeLabel); annotation(obj, ComponentAnnotation) == component && (by == c.Name() || by != "" && by == c.Label(compositeLabel)) && c.mayHaveApplied(obj) {
		return adoptable
	}
	return foreign
}

// mayHaveApplied reports whether a claim of this name and kind may have applied an object, by its
// managed fields. It is true where these name no claim at all, since backup tools leave them out.
// Labels alone do not distinguish a DatabaseCluster's object from one of an EcommercePlatform of
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

// controllerOf returns the controller reference of an object, or nil.
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

// adopt adds to observed the objects that Crossplane has fetched on request and that the claim may
// adopt: passwords are read from them, and objects that hold data are changed as carefully as if
// the claim had created them.
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
		// The object is required again, even if the intent is about to refuse the claim for what
		// the object contains: Crossplane gives up if requirements keep changing from call to call.
		c.Require(requirement, selectorOf(obj, c.Namespace()))
		if c.adopted == nil {
			// The request's own map must not change.
			c.adopted, c.observed = map[string]bool{}, maps.Clone(c.observed)
			if c.observed == nil {
				c.observed = map[string]*fnv1.Resource{}
			}
		}
		c.adopted[component], c.observed[component] = true, &fnv1.Resource{Resource: obj}
	}
}

// Existing requires an object that has the name of a component, for an intent that must know what
// was left behind before it can decide whether the claim is valid. An object that the claim may
// adopt is observed from then on. It returns false until Crossplane has fetched the object.
func (c *Claim) Existing(component, apiVersion, kind, name string) bool {
	if c.IsComposed(component) {
		return true
	}
	_, fetched := c.Require(ExistingPrefix+component, &fnv1.ResourceSelector{
		ApiVersion: apiVersion, Kind: kind, Namespace: new(c.Namespace()), Match: &fnv1.ResourceSelector_MatchName{MatchName: name},
	})
	return fetched || c.IsReview()
}

// IsComposed reports whether a component exists and belongs to the claim.
func (c *Claim) IsComposed(component string) bool {
	return c.observed[component] != nil && !c.adopted[component]
}

// checkExisting requires the existing objects over which a decision would apply components for the
// first time. It withholds a component while such an object is being deleted, and returns
// ErrPending until Crossplane has fetched them, or an error of the claim where one belongs to
// another owner. A claim at rest requires none.
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
		return &InvalidError{reason: appsv1.ReasonAlreadyExists, text: fmt.Sprintf("%v. Further objects of others with names of this claim: %d", refused[0], len(refused)-1)}
	}
	return refused[0]
}

// foreignError returns an error that names an object of another owner, and what to do about it.
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

// titleOf returns kind and name of an object, for messages.
func titleOf(obj *structpb.Struct) string {
	return obj.GetFields()["kind"].GetStringValue() + " " + nameOf(obj)
}

func nameOf(obj *structpb.Struct) string {
	return obj.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
}

// resourceOf returns the name by which kubectl addresses the kind of an object.
func resourceOf(obj *structpb.Struct) string {
	gk := health.GroupKind(obj)
	return strings.ToLower(strings.TrimSuffix(gk.Kind+"."+gk.Group, "."))
}

// selectorOf returns a selector of an object by its name in a namespace.
func selectorOf(obj *structpb.Struct, namespace string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: obj.GetFields()["apiVersion"].GetStringValue(),
		Kind:       obj.GetFields()["kind"].GetStringValue(),
		Namespace:  &namespace,
		Match:      &fnv1.ResourceSelector_MatchName{MatchName: nameOf(obj)},
	}
}
