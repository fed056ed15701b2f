package compose

import (
	"encoding/base64"
	"fmt"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/structs"
)

// SettingsRequirement is the name under which a pipeline step requires the
// installation's EnvironmentConfig.
const SettingsRequirement = "settings"

// Claim is what an intent may read: the composite resource as it is in the cluster, what has been
// composed for it so far, and the installation's settings.
type Claim struct {
	composite *structpb.Struct
	observed  map[string]*fnv1.Resource
	settings  *structpb.Struct
	source    Source

	// acceptedSettings are the settings that the claim is composed with, as JSON. settingsProblem
	// is the reason why they are not the installation's current ones, or nil.
	acceptedSettings string
	settingsProblem  error

	// composed is the number of objects that Crossplane has composed for the claim. adopted are the
	// components whose existing objects are adopted in this pass. They are in observed too.
	composed int
	adopted  map[string]bool

	// required and schemas are what the request contains of what was required. asked is what the
	// intent requires.
	required map[string]*fnv1.Resources
	schemas  map[string]*fnv1.Schema
	asked    map[string]*fnv1.ResourceSelector

	// requeueWithin is the longest time until the next pass that the intent allows, or 0.
	requeueWithin time.Duration
}

// NewClaim reads a claim from a function request.
func NewClaim(req *fnv1.RunFunctionRequest, source Source) *Claim {
	c := &Claim{
		composite: req.GetObserved().GetComposite().GetResource(),
		observed:  req.GetObserved().GetResources(),
		source:    source,
		required:  req.GetRequiredResources(),
		schemas:   req.GetRequiredSchemas(),
		composed:  len(req.GetObserved().GetResources()),
	}
	c.adopt()
	if rs := req.GetRequiredResources()[SettingsRequirement].GetItems(); len(rs) > 0 {
		if c.settings = rs[0].GetResource().GetFields()["data"].GetStructValue(); c.settings == nil {
			c.settings = &structpb.Struct{}
		}
	}
	return c
}

// Name returns the name of the claim.
func (c *Claim) Name() string { return c.meta("name").GetStringValue() }

// UID returns the UID of the claim.
func (c *Claim) UID() string { return c.meta("uid").GetStringValue() }

// Created returns when the claim was created, or the zero time for one that was not.
func (c *Claim) Created() time.Time {
	at, _ := time.Parse(time.RFC3339, c.meta("creationTimestamp").GetStringValue())
	return at
}

// Namespace returns the namespace of the claim.
func (c *Claim) Namespace() string { return c.meta("namespace").GetStringValue() }

// Kind returns the kind of the claim.
func (c *Claim) Kind() string { return c.composite.GetFields()["kind"].GetStringValue() }

// manager returns the field manager under which Crossplane applies what it composes for the claim
// (ComposedFieldOwnerName of crossplane/crossplane v2.4.0).
func (c *Claim) manager() string {
	return fieldowner.Manager(c.Name(), health.GroupKind(c.composite))
}

// Label returns the value of a label of the claim, or "".
func (c *Claim) Label(key string) string {
	return c.meta("labels").GetStructValue().GetFields()[key].GetStringValue()
}

// Annotation returns the value of an annotation of the claim, or "".
func (c *Claim) Annotation(key string) string {
	return c.meta("annotations").GetStructValue().GetFields()[key].GetStringValue()
}

// Generation returns the generation of the claim.
func (c *Claim) Generation() int64 { return int64(c.meta("generation").GetNumberValue()) }

// Spec reads the claim's spec into a pointer to its type.
func (c *Claim) Spec(into any) error {
	s := c.composite.GetFields()["spec"].GetStructValue()
	if s == nil {
		return Invalidf("spec is missing")
	}
	if err := structs.Decode(s, into); err != nil {
		return Invalidf("cannot read spec: %v", err)
	}
	return nil
}

// SpecAt returns the part of the claim's spec at a path as it was written, or nil.
func (c *Claim) SpecAt(path ...string) *structpb.Struct {
	s := c.composite.GetFields()["spec"].GetStructValue()
	for _, field := range path {
		s = s.GetFields()[field].GetStructValue()
	}
	return s
}

// Observed returns the object composed under a component's name, or nil.
func (c *Claim) Observed(component string) *structpb.Struct {
	return c.observed[component].GetResource()
}

// ReadObserved reads the object composed under a component's name into a pointer to its type, and
// reports whether there is one.
func (c *Claim) ReadObserved(component string, into any) (bool, error) {
	s := c.Observed(component)
	if s == nil {
		return false, nil
	}
	if err := structs.Decode(s, into); err != nil {
		return false, fmt.Errorf("cannot read the observed %s of component %s: %w", s.GetFields()["kind"].GetStringValue(), component, err)
	}
	return true, nil
}

// Secret returns the value of a key of the Secret composed under a component's name: the observed
// value, or a random one if there is no Secret. It never generates another value for a Secret that
// exists, since clients that use the old one would be locked out: a missing key is an error of the
// claim.
func (c *Claim) Secret(component, key string, draw func(Source) (string, error)) (string, error) {
	s := c.Observed(component)
	// A review shows no secret, not even one that exists.
	if c.IsReview() || s == nil {
		return draw(c.source)
	}
	v, ok := SecretValue(s, key)
	if !ok {
		name := s.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
		return "", Invalidf("Secret %s has lost its key %s: put it back, or delete the Secret if nothing uses it any more", name, key)
	}
	return v, nil
}

// Rotatable is like Secret, for a value that all its users can be given again: a key that was
// removed from the Secret gets a new value.
func (c *Claim) Rotatable(component, key string, draw func(Source) (string, error)) (string, error) {
	if v, ok := SecretValue(c.Observed(component), key); ok && !c.IsReview() {
		return v, nil
	}
	return draw(c.source)
}

// SecretValue returns the value of a key of a Secret, and reports whether it has one.
func SecretValue(secret *structpb.Struct, key string) (string, bool) {
	v, err := base64.StdEncoding.DecodeString(secret.GetFields()["data"].GetStructValue().GetFields()[key].GetStringValue())
	return string(v), err == nil && len(v) > 0
}

// Kept returns what to apply so that a component that exists stays as it is. An intent changes in
// it what is due. It is nil for a component that does not exist.
func (c *Claim) Kept(component string) *structpb.Struct {
	s := c.Observed(component)
	if s == nil {
		return nil
	}
	return proto.CloneOf(c.keep(s))
}

// SecretData returns a value as the data of a Secret holds it, in base64.
func SecretData(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

// IsReview reports whether the result is for people to read and compare: it must contain no secret,
// and not depend on the time.
func (c *Claim) IsReview() bool {
	_, ok := c.source.(ReviewSource)
	return ok
}

// Now returns the current time, for what expires. It is zero in a review.
func (c *Claim) Now() time.Time { return c.source.Now() }

// Require requires resources that are not composed, under a name that the intent chooses, and
// returns them. It returns false until Crossplane has fetched them: the intent then returns
// ErrPending, or does without. Crossplane watches what is required, so do not require objects that
// change all the time.
func (c *Claim) Require(name string, sel *fnv1.ResourceSelector) ([]*structpb.Struct, bool) {
	if c.asked == nil {
		c.asked = map[string]*fnv1.ResourceSelector{}
	}
	c.asked[name] = sel
	r, ok := c.required[name]
	out := make([]*structpb.Struct, 0, len(r.GetItems()))
	for _, item := range r.GetItems() {
		out = append(out, item.GetResource())
	}
	return out, ok
}

// HasKind reports whether the cluster serves the kind whose schema the pipeline step requires under
// a name, for a component of that kind. It is true where the component has been composed: discovery
// that fails for a moment must not remove what exists.
func (c *Claim) HasKind(requirement, component string) bool {
	return len(c.schemas[requirement].GetOpenapiV3().GetFields()) > 0 || c.Observed(component) != nil
}

func (c *Claim) meta(field string) *structpb.Value {
	return c.composite.GetFields()["metadata"].GetStructValue().GetFields()[field]
}

// status returns a field of the claim's observed status.
func (c *Claim) status(field string) *structpb.Value {
	return c.composite.GetFields()["status"].GetStructValue().GetFields()[field]
}

// StatusNumber returns a number in the claim's observed status, or 0.
func (c *Claim) StatusNumber(field string) int64 { return int64(c.status(field).GetNumberValue()) }

// OwnedByOther reports whether a client other than Crossplane, such as an autoscaler, has set a
// field of the object composed under a component's name. The path is that of managed fields:
// "f:spec", "f:replicas".
func (c *Claim) OwnedByOther(component string, path ...string) bool {
	for _, fields := range fieldowner.Others(c.Observed(component)) {
		if fieldowner.Has(fields, path...) {
			return true
		}
	}
	return false
}

// PodFailure returns the description of a failing pod in the claim's status, or "".
func (c *Claim) PodFailure() string { return c.status(appsv1.FieldPodFailure).GetStringValue() }

// wasReady reports whether the claim has been ready at its current generation.
func (c *Claim) wasReady() bool {
	g := int64(c.status(appsv1.FieldReadyGeneration).GetNumberValue())
	return g != 0 && g == c.Generation()
}

// isWatched is false while Crossplane's circuit breaker drops the claim's events.
func (c *Claim) isWatched() bool { return c.conditionStatus(appsv1.TypeResponsive) != "False" }

// isReady reports whether the claim's condition Ready is True.
func (c *Claim) isReady() bool { return c.conditionStatus("Ready") == "True" }

// conditionStatus returns the status of the claim's condition of a type, or "".
func (c *Claim) conditionStatus(typ string) string {
	return c.condition(typ)["status"].GetStringValue()
}

// condition returns the fields of the claim's condition of a type, or nil.
func (c *Claim) condition(typ string) map[string]*structpb.Value {
	for _, v := range c.status("conditions").GetListValue().GetValues() {
		if f := v.GetStructValue().GetFields(); f["type"].GetStringValue() == typ {
			return f
		}
	}
	return nil
}
