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

// Decision is what the kernel makes of a plan and what is observed.
type Decision struct {
	// Apply is the objects to apply, by component.
	Apply map[string]*structpb.Struct

	// Health of every declared component, withheld ones included.
	Health map[string]health.Status

	// Withheld names the components that wait for others, in their order.
	Withheld []string

	// Kept names the components that are no longer declared and stay, since
	// they hold data. Sorted.
	Kept []string

	claim   string
	plan    *Plan
	objects objects
}

// Decide applies the rules of the package to a plan. It is pure.
func Decide(claim string, p *Plan, observed map[string]*fnv1.Resource) (*Decision, error) {
	objects, err := check(claim, p)
	if err != nil {
		return nil, err
	}

	d := &Decision{
		claim:   claim,
		plan:    p,
		objects: objects,
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

	// The health of all that exists is known now, so one pass over the
	// components decides, whatever their order.
	for i := range p.Components {
		c := &p.Components[i]
		if obs := observed[c.Name].GetResource(); obs != nil {
			d.holdChange(c, obs)
			continue
		}
		if err := d.gate(c); err != nil {
			return nil, err
		}
	}

	released := make(map[string]bool, len(p.Release))
	for _, n := range p.Release {
		released[n] = true
	}
	for n, r := range observed {
		if !declared[n] && !released[n] && annotation(r.GetResource(), HoldsDataAnnotation) == "true" {
			d.Apply[n] = keep(r.GetResource())
			d.Kept = append(d.Kept, n)
		}
	}
	slices.Sort(d.Kept)
	return d, nil
}

// observe judges a component that exists, and applies it. One that does not
// exist is not healthy.
func (d *Decision) observe(c *Component, obs *structpb.Struct) error {
	if obs == nil {
		d.Health[c.Name] = health.Status{State: health.Progressing}
		return nil
	}
	if c.Once {
		d.Apply[c.Name] = keep(obs)
		d.Health[c.Name] = judge(c, obs)
		return nil
	}
	if err := d.make(c); err != nil {
		return err
	}
	want, err := encode(c)
	if err != nil {
		return err
	}
	d.Apply[c.Name] = want
	d.Health[c.Name] = health.Status{State: health.Progressing, Message: "A change is being applied"}
	if annotation(want, AppliedAnnotation) == annotation(obs, AppliedAnnotation) {
		d.Health[c.Name] = judge(c, obs)
	}
	return nil
}

// gate withholds a component that does not exist until all that it comes after
// is healthy. What is withheld is not even encoded: at first that is most of a
// claim.
func (d *Decision) gate(c *Component) error {
	if w := d.waitsFor(c.After); len(w) > 0 {
		d.Withheld = append(d.Withheld, c.Name)
		d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Waits for " + strings.Join(w, ", ")}
		return nil
	}
	if err := d.make(c); err != nil {
		return err
	}
	want, err := encode(c)
	if err != nil {
		return err
	}
	d.Apply[c.Name] = want
	d.Health[c.Name] = missing(c, want)
	return nil
}

// holdChange keeps a component that exists as it is until all that its changes
// come after is healthy.
func (d *Decision) holdChange(c *Component, obs *structpb.Struct) {
	if c.Once {
		return
	}
	w := d.waitsFor(c.ChangeAfter)
	if len(w) == 0 || annotation(obs, AppliedAnnotation) == annotation(d.Apply[c.Name], AppliedAnnotation) {
		return
	}
	kept := keep(obs)
	if has(kept, "spec", "replicas") && !has(d.Apply[c.Name], "spec", "replicas") {
		// An autoscaler's.
		kept.Fields["spec"] = without(kept.GetFields()["spec"], "replicas")
	}
	d.Apply[c.Name] = kept
	d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Its change waits for " + strings.Join(w, ", ")}
}

// make a component's object, unless it is made.
func (d *Decision) make(c *Component) error {
	if c.Object != nil {
		return nil
	}
	c.Object = c.Make()
	return d.objects.check(d.claim, c)
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

// encode returns the object to apply for a component, with the kernel's marks.
func encode(c *Component) (*structpb.Struct, error) {
	s, err := structs.EncodeObject(c.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot compose component %s: %w", c.Name, err)
	}
	// The hash is of what was declared, so it goes in before the other marks.
	// Kinds that are healthy once stored need none.
	if len(c.ChangeAfter) > 0 || !c.Once && !health.IsStored(health.GroupKind(s)) {
		annotate(s, AppliedAnnotation, digest(declared(c, s)))
	}
	if c.HoldsData {
		annotate(s, HoldsDataAnnotation, "true")
	}
	return s, nil
}

// declared is what of an object counts as the claim's will.
func declared(c *Component, s *structpb.Struct) *structpb.Struct {
	if !c.Scaled || !has(s, "spec", "replicas") {
		return s
	}
	out := shallow(s)
	out.Fields["spec"] = without(s.GetFields()["spec"], "replicas")
	return out
}

// judge returns the health of a component that carries what is declared now.
func judge(c *Component, observed *structpb.Struct) health.Status {
	if c.Health != nil && !health.IsBeingDeleted(observed) {
		return c.Health(observed)
	}
	return health.Of(observed)
}

// missing is the health of a component that does not exist yet. It is never
// better than progressing, whatever the judge makes of an object that has no
// status.
func missing(c *Component, want *structpb.Struct) health.Status {
	if c.Health == nil {
		return health.OfMissing(want)
	}
	if h := c.Health(want); !h.IsHealthy() {
		return health.Status{State: health.Progressing, Message: h.Message}
	}
	return health.Status{State: health.Progressing, Message: "Not created yet"}
}
