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
}

// Decide applies the rules of the package to a plan. It is pure.
func Decide(claim string, p *Plan, observed map[string]*fnv1.Resource) (*Decision, error) {
	if err := check(claim, p); err != nil {
		return nil, err
	}

	d := &Decision{
		Apply:  make(map[string]*structpb.Struct, len(p.Components)),
		Health: make(map[string]health.Status, len(p.Components)),
	}
	declared := make(map[string]bool, len(p.Components))
	for i := range p.Components {
		c := &p.Components[i]
		declared[c.Name] = true
		want, err := encode(c)
		if err != nil {
			return nil, fmt.Errorf("cannot compose component %s: %w", c.Name, err)
		}
		d.Apply[c.Name] = want
		d.Health[c.Name] = judge(c, want, observed[c.Name].GetResource())
	}

	// Every health is known now, so one pass over the components decides,
	// whatever their order.
	for i := range p.Components {
		c := &p.Components[i]
		obs := observed[c.Name].GetResource()
		if obs == nil {
			d.gate(c)
			continue
		}
		d.holdChange(c, obs)
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

// gate withholds a component that does not exist until all that it comes after
// is healthy.
func (d *Decision) gate(c *Component) {
	w := d.waitsFor(c.After)
	if len(w) == 0 {
		return
	}
	delete(d.Apply, c.Name)
	d.Withheld = append(d.Withheld, c.Name)
	d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Waits for " + strings.Join(w, ", ")}
}

// holdChange keeps a component that exists as it is until all that its changes
// come after is healthy.
func (d *Decision) holdChange(c *Component, obs *structpb.Struct) {
	if c.Once {
		d.Apply[c.Name] = keep(obs)
		return
	}
	w := d.waitsFor(c.ChangeAfter)
	if len(w) == 0 || annotation(obs, AppliedAnnotation) == annotation(d.Apply[c.Name], AppliedAnnotation) {
		return
	}
	d.Apply[c.Name] = keep(obs)
	d.Health[c.Name] = health.Status{State: health.Progressing, Message: "Its change waits for " + strings.Join(w, ", ")}
}

// waitsFor returns those of the named components that are not healthy.
func (d *Decision) waitsFor(names []string) []string {
	var out []string
	for _, n := range names {
		if !d.Health[n].IsHealthy() {
			out = append(out, n)
		}
	}
	return out
}

// encode returns the object to apply for a component, with the kernel's marks.
func encode(c *Component) (*structpb.Struct, error) {
	s, err := structs.EncodeObject(c.Object)
	if err != nil {
		return nil, err
	}
	if s.GetFields()["apiVersion"].GetStringValue() == "" || s.GetFields()["kind"].GetStringValue() == "" {
		return nil, fmt.Errorf("its %T has no apiVersion or kind", c.Object)
	}
	// The hash is of what was declared, so it goes in before the other marks.
	// Kinds that are healthy once stored need none.
	if len(c.ChangeAfter) > 0 || !c.Once && !health.IsStored(health.GroupKind(s)) {
		annotate(s, AppliedAnnotation, digest(s))
	}
	if c.HoldsData {
		annotate(s, HoldsDataAnnotation, "true")
	}
	return s, nil
}

// judge returns the health of a component against what is declared now.
func judge(c *Component, want, observed *structpb.Struct) health.Status {
	if observed == nil {
		return missing(c, want)
	}
	if !c.Once && annotation(want, AppliedAnnotation) != annotation(observed, AppliedAnnotation) {
		return health.Status{State: health.Progressing, Message: "A change is being applied"}
	}
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
