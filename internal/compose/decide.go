package compose

import (
	"fmt"
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/structs"
)

// Decision is what the kernel decides from a plan and the observed objects.
type Decision struct {
	// Apply holds the objects to apply, by component.
	Apply map[string]*structpb.Struct

	// Health holds the health of every declared component, withheld ones included.
	Health map[string]health.Status

	// Withheld names the components that wait for others, in the order of the plan.
	Withheld []string

	// Kept names the components that are no longer declared and stay because they hold data.
	// Sorted.
	Kept []string

	// First names the components that are applied for the first time, in the order of the plan. An
	// existing object of their name must not belong to another owner.
	First []string

	// LeftOut is true where one component, which the API server refused in an earlier pass, is left out of
	// this one.
	LeftOut bool

	// Stopped is true where nothing is changed in this pass because the API server refused a
	// component in an earlier one.
	Stopped bool

	claim   *Claim
	plan    *Plan
	objects objects
	upgrade *upgrade

	// refused is what the API server has refused of the claim.
	refused refusal

	// size is the size of all objects that were encoded, in bytes.
	size int

	// leaving names the components that wait until an existing object of their name is deleted.
	leaving map[string]bool
}

// Decide applies the rules of the package to a claim's plan. It is pure.
func Decide(claim *Claim, p *Plan) (*Decision, error) {
	objects, err := check(claim.Name(), p)
	if err != nil {
		return nil, err
	}

	observed := claim.observed
	d := &Decision{
		claim:   claim,
		refused: claim.refusal(),
		plan:    p,
		objects: objects,
		upgrade: upgradeOf(claim, p.Upgrade),
		Apply:   make(map[string]*structpb.Struct, len(p.Components)),
		Health:  make(map[string]health.Status, len(p.Components)),
	}
	declared := make(map[string]bool, len(p.Components))
	for i := range p.Components {
		c := &p.Components[i]
		declared[c.Name] = true
		if err := d.observe(c, observed[c.Name].GetResource()); err != nil {
			return nil, err
		}
	}

	renames := d.upgrade.holds && d.hasUndeclaredPods(declared)

	// The health of all that exists is known now, so one pass over the
	// components decides, whatever their order.
	for i := range p.Components {
		c := &p.Components[i]
		if obs := observed[c.Name].GetResource(); obs != nil {
			d.holdChange(c, obs)
			d.pause(c)
			if claim.adopted[c.Name] {
				d.First = append(d.First, c.Name)
			}
			continue
		}
		if renames && d.wouldAddPods(c) {
			continue
		}
		if err := d.gate(c); err != nil {
			return nil, err
		}
		if d.Apply[c.Name] != nil {
			d.pause(c)
		}
	}

	d.passStopped(observed)

	var undeclared []string
	released := make(map[string]bool, len(p.Release))
	for _, n := range p.Release {
		released[n] = true
	}
	for n, r := range observed {
		switch {
		case declared[n] || released[n]:
		case annotation(r.GetResource(), HoldsDataAnnotation) == "true":
			d.Apply[n] = claim.keep(r.GetResource())
			d.Kept = append(d.Kept, n)
		default:
			undeclared = append(undeclared, n)
		}
	}
	slices.Sort(d.Kept)
	d.keepUndeclared(undeclared)
	return d, nil
}

// observe determines the health of a component that exists, and what to apply for it. One that does
// not exist is not healthy.
func (d *Decision) observe(c *Component, obs *structpb.Struct) error {
	if obs == nil {
		d.Health[c.Name] = health.Status{State: health.Progressing}
		return nil
	}
	if c.Once {
		d.Apply[c.Name] = d.claim.keep(obs)
		d.Health[c.Name] = d.judge(c, obs, true)
		return nil
	}
	if err := d.make(c); err != nil {
		return err
	}
	want, held, err := d.encode(c, obs)
	if err != nil {
		return err
	}
	d.Apply[c.Name] = want
	d.Health[c.Name] = d.judge(c, obs, held || isApplied(want, obs))
	if c.Paused {
		d.Health[c.Name] = health.Status{State: health.Progressing, Message: "A change is being applied"}
	}
	return nil
}

// pause reports a paused component as progressing, whatever its object reports, and withholds it
// until the components of its ChangeAfter are healthy.
func (d *Decision) pause(c *Component) {
	if !c.Paused {
		return
	}
	d.Health[c.Name] = health.Status{State: health.Progressing, Message: "A change is being applied"}
	if w := d.waitsFor(c.ChangeAfter); len(w) > 0 {
		d.Withheld = append(d.Withheld, c.Name)
		d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Waits for " + strings.Join(w, ", ")}
	}
}

// gate withholds a component that does not exist until all that it comes after is healthy. A
// withheld component is not even encoded: at first that is most of a claim.
func (d *Decision) gate(c *Component) error {
	if w := d.waitsFor(c.After); len(w) > 0 {
		d.Withheld = append(d.Withheld, c.Name)
		d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Waits for " + strings.Join(w, ", ")}
		return nil
	}
	if err := d.make(c); err != nil {
		return err
	}
	want, _, err := d.encode(c, nil)
	if err != nil {
		return err
	}
	d.Apply[c.Name] = want
	d.First = append(d.First, c.Name)
	d.Health[c.Name] = missing(c, want)
	if d.refused.names(c.Name, false) {
		d.Health[c.Name] = invalidStatus()
	}
	return nil
}

// wait withholds a component until an existing object of its name is deleted.
func (d *Decision) wait(component, message string) {
	delete(d.Apply, component)
	if d.leaving == nil {
		d.leaving = map[string]bool{}
	}
	d.leaving[component] = true
	d.Health[component] = health.Status{State: health.Progressing, Message: message}
}

// holdChange keeps a component that exists as it is until the components of its ChangeAfter are
// healthy.
func (d *Decision) holdChange(c *Component, obs *structpb.Struct) {
	if c.Once {
		return
	}
	w := d.waitsFor(c.ChangeAfter)
	if len(w) == 0 || isApplied(d.Apply[c.Name], obs) {
		return
	}
	kept := d.claim.keep(obs)
	if has(kept, "spec", "replicas") && !has(d.Apply[c.Name], "spec", "replicas") {
		// An autoscaler owns the replicas.
		kept.Fields["spec"] = without(kept.GetFields()["spec"], "replicas")
	}
	d.upgrade.unfinished = true
	d.Apply[c.Name] = kept
	d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Its change waits for " + strings.Join(w, ", ")}
}

// passStopped changes nothing in this pass where Crossplane stopped at a component in the last
// pass, or in an earlier one after which the component is not yet due again. Any change that is
// refused keeps the status from being written, and the claim would be reported ready for its
// earlier state. The component that Crossplane named need not be the only one that is refused, and
// one that carries the hash of its declaration may have been edited by hand. Nothing is held back
// where the claim has been ready at its current generation and the component is as declared: the
// cause may then be a failure of the API server.
func (d *Decision) passStopped(observed map[string]*fnv1.Resource) {
	stopped := d.refused.stopped
	if d.Apply[stopped] == nil || d.claim.wasReady() && d.isInPlace(stopped, observed) {
		return
	}
	if after, ok := d.retriesAfter(stopped); ok && observed[stopped].GetResource() == nil {
		switch waits := len(d.waitsFor(after)) > 0; {
		case waits:
			delete(d.Apply, stopped)
			d.First = slices.DeleteFunc(d.First, func(n string) bool { return n == stopped })
			d.LeftOut, d.Health[stopped] = true, d.refused.stoppedStatus()
			return
		case !d.refused.isNew:
			return // What it waited for is healthy now.
		}
	}
	d.Stopped, d.upgrade.unfinished = true, true
	d.Health[stopped] = d.refused.stoppedStatus()
	for name := range d.Apply {
		switch obs := observed[name].GetResource(); {
		case obs != nil && !d.claim.adopted[name]:
			d.Apply[name] = d.claim.keep(obs)
		default:
			delete(d.Apply, name)
		}
	}
	d.First = slices.DeleteFunc(d.First, func(n string) bool { return d.Apply[n] == nil })
}

// retriesAfter returns the components of a component's RetryAfter, and whether it has any.
func (d *Decision) retriesAfter(component string) ([]string, bool) {
	i := slices.IndexFunc(d.plan.Components, func(c Component) bool { return c.Name == component })
	if i < 0 {
		return nil, false
	}
	after := d.plan.Components[i].RetryAfter
	return after, len(after) > 0
}

// isInPlace reports whether a component exists as it is declared.
func (d *Decision) isInPlace(name string, observed map[string]*fnv1.Resource) bool {
	obs := observed[name].GetResource()
	return obs != nil && !d.claim.adopted[name] && isApplied(d.Apply[name], obs)
}

// make builds a component's object and checks it, unless that is done already.
func (d *Decision) make(c *Component) error {
	if c.Object != nil {
		return nil
	}
	c.Object = c.Make()
	if err := d.objects.check(d.claim.Name(), c); err != nil {
		c.Object = nil // The next call returns the error again.
		return err
	}
	return nil
}

// waitsFor returns the parts of those of the named components that are not
// healthy: the status lists parts, so users know no other names.
func (d *Decision) waitsFor(names []string) []string {
	var out []string
	for _, n := range names {
		if d.Health[n].IsHealthy() {
			continue
		}
		if part := d.plan.part(n); !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

// mostComposed is the largest size of all objects of a claim, in bytes. Crossplane's gRPC client takes
// answers of 4 MiB at most, and the memory of the function is that of all claims.
const mostComposed = 3 << 20

// encode returns the object to apply for a component. Where changes of the release wait, the pods
// of an observed object stay as they are, and held is true.
func (d *Decision) encode(c *Component, observed *structpb.Struct) (s *structpb.Struct, held bool, err error) {
	s, err = structs.EncodeObject(c.Object)
	if err != nil {
		return nil, false, fmt.Errorf("cannot compose component %s: %w", c.Name, err)
	}
	if d.size += structs.Size(s); d.size > mostComposed {
		return nil, false, Invalidf("the claim composes more than %d MiB of objects: put large values into a ConfigMap or a Secret of your own, and name it in the claim", mostComposed>>20)
	}
	held, pods := d.hold(s, observed)
	mark(c, s)
	if was := annotation(observed, AppliedAnnotation); held && was != "" {
		// The hash stays, so that nothing has changed if the release before is installed again.
		annotate(s, AppliedAnnotation, was)
	}
	// The following annotations are no part of the declaration, so the hash leaves them out.
	if pods != "" && d.upgrade.Upgrade != nil {
		annotate(s, PodsAnnotation, pods)
	}
	if to := d.claim.Annotation(UpgradeAnnotation); to != "" && isClaimGroup[health.GroupKind(s).Group] {
		annotate(s, UpgradeAnnotation, to)
	}
	return s, held, nil
}

// mark adds the kernel's annotations to an object.
func mark(c *Component, s *structpb.Struct) {
	// The hash is of the declaration, so it is taken before other annotations are added. Of a
	// Secret no hash is taken: its data is compared.
	if !c.Once && !isSecret(s) {
		annotate(s, AppliedAnnotation, digest(declared(c, s)))
	}
	if c.HoldsData {
		annotate(s, HoldsDataAnnotation, "true")
	}
}

// declared returns the part of an object that the applied hash covers.
func declared(c *Component, s *structpb.Struct) *structpb.Struct {
	if !c.Scaled || !has(s, "spec", "replicas") {
		return s
	}
	out := shallow(s)
	out.Fields["spec"] = without(s.GetFields()["spec"], "replicas")
	return out
}

// judge returns the health of a component that exists. One that does not carry its current
// declaration is not healthy, with one exception: an object of a kind that is healthy once stored,
// of a claim that has been ready at its current generation. Such a change is Storeplane's own, like
// the renewal of a certificate, and the claim stays ready unless the API server refuses the change.
func (d *Decision) judge(c *Component, observed *structpb.Struct, applied bool) health.Status {
	switch {
	case d.claim.adopted[c.Name]:
		return health.Status{State: health.Progressing, Message: "The object that exists is being adopted"}
	case d.refused.names(c.Name, applied):
		return invalidStatus()
	case applied || health.IsBeingDeleted(observed):
	case !d.claim.wasReady() || !health.IsStored(health.GroupKind(observed)):
		return health.Status{State: health.Progressing, Message: "A change is being applied"}
	}
	if c.Health != nil && !health.IsBeingDeleted(observed) {
		return c.Health(observed)
	}
	return health.Of(observed)
}

// isApplied reports whether an observed object carries what is to be applied.
func isApplied(want, observed *structpb.Struct) bool {
	if !isSecret(want) {
		return annotation(want, AppliedAnnotation) == annotation(observed, AppliedAnnotation)
	}
	have := observed.GetFields()["data"].GetStructValue().GetFields()
	for k, v := range want.GetFields()["data"].GetStructValue().GetFields() {
		if have[k].GetStringValue() != v.GetStringValue() {
			return false
		}
	}
	return true
}

func isSecret(obj *structpb.Struct) bool {
	return obj.GetFields()["kind"].GetStringValue() == "Secret" && obj.GetFields()["apiVersion"].GetStringValue() == "v1"
}

// missing returns the health of a component that does not exist yet. It is never healthy, even
// where Health accepts an object without a status.
func missing(c *Component, want *structpb.Struct) health.Status {
	if c.Health == nil {
		return health.OfMissing(want)
	}
	if h := c.Health(want); !h.IsHealthy() {
		return health.Status{State: health.Progressing, Message: h.Message}
	}
	return health.Status{State: health.Progressing, Message: "Not created yet"}
}
