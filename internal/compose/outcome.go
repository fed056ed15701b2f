package compose

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/health"
)

// Phase is the state of a claim in one word, as far as it is the same for every kind.
type Phase string

// Phases of a claim.
const (
	Pending   Phase = appsv1.PhasePending
	Deploying Phase = appsv1.PhaseDeploying
	Running   Phase = appsv1.PhaseRunning
	Degraded  Phase = appsv1.PhaseDegraded
	Failed    Phase = appsv1.PhaseFailed
)

// Outcome is the result of a decision, for the claim's status.
type Outcome struct {
	// Phase of the claim.
	Phase Phase

	// Ready is true when every declared component is healthy.
	Ready bool

	// Common is the part of the status that every claim shares.
	Common appsv1.CommonStatus

	health map[string]health.Status
	failed map[string]bool // parts that will not become healthy without a change
}

// Health returns the health of a declared component.
func (o Outcome) Health(component string) health.Status { return o.health[component] }

// Part returns the state of a part, and whether it is declared.
func (o Outcome) Part(name string) (appsv1.ComponentStatus, bool) {
	for _, p := range o.Common.Components {
		if p.Name == name {
			return p, true
		}
	}
	return appsv1.ComponentStatus{}, false
}

// newOutcome summarizes a decision.
func newOutcome(c *Claim, p *Plan, d *Decision) Outcome {
	o := Outcome{Ready: true, health: d.Health}
	withheld := make(map[string]bool, len(d.Withheld))
	for _, n := range d.Withheld {
		withheld[n] = true
	}

	index := map[string]int{}
	worst := health.Healthy
	ranks := map[string]rank{}
	for i := range p.Components {
		comp := &p.Components[i]
		at, ok := index[comp.part()]
		if !ok {
			at = len(o.Common.Components)
			index[comp.part()] = at
			o.Common.Components = append(o.Common.Components, appsv1.ComponentStatus{Name: comp.part(), Ready: true})
		}
		if comp.Aside {
			continue
		}
		h := d.Health[comp.Name]
		worst = min(worst, h.State)
		if h.IsHealthy() {
			continue
		}
		o.Ready = false
		part := &o.Common.Components[at]
		if r := d.rankOf(comp, h, withheld[comp.Name]); part.Ready || r < ranks[part.Name] {
			part.Ready, part.Message, ranks[part.Name] = false, h.Message, r
		}
	}

	if d.refused.isAny() {
		// What was refused may belong to another function, or not be named.
		o.Ready = false
	}
	o.failed = map[string]bool{}
	for part, r := range ranks {
		o.failed[part] = r == rankFailed
	}
	o.Common.Message = message(o.Common.Components, ranks)
	if o.Common.Message == "" && !o.Ready {
		o.Common.Message = "Waiting for the API server to take what it refuses as invalid: kubectl describe shows why in the events of this claim"
	}
	o.Common.ReadyGeneration = int64(c.status(appsv1.FieldReadyGeneration).GetNumberValue())
	if o.Ready {
		o.Common.ReadyGeneration = c.Generation()
	}
	o.Phase = phase(c, o, worst)
	o.Common.AcceptedSettings = c.acceptedSettings
	d.upgrade.report(&o.Common, c, o.Ready)
	if o.Common.Message == "" && c.settingsProblem != nil {
		o.Common.Message = c.settingsProblem.Error()
	}
	return o
}

// rank orders the problems of a part: the one with the lowest rank explains the part, the first one
// among equals.
type rank int

const (
	// rankFailed does not pass without a change.
	rankFailed rank = iota
	// rankCause is being worked on.
	rankCause
	// rankStoring passes with the next pass.
	rankStoring
	// rankWithheld only waits for others.
	rankWithheld
)

func (d *Decision) rankOf(c *Component, h health.Status, withheld bool) rank {
	switch {
	case h.State == health.Failed:
		return rankFailed
	case withheld:
		return rankWithheld
	case d.leaving[c.Name]:
		return rankCause
	case c.Health == nil && c.Object != nil && health.IsStored(groupKind(c)):
		// Object is nil for a component that is kept as it was first applied.
		return rankStoring
	default:
		return rankCause
	}
}

// message names the parts that hold up the claim, with what they wait for.
func message(parts []appsv1.ComponentStatus, ranks map[string]rank) string {
	var causes, storing []string
	for _, p := range parts {
		switch r := ranks[p.Name]; {
		case p.Ready || r == rankWithheld:
		case r == rankStoring:
			storing = append(storing, p.Name)
		default:
			causes = append(causes, p.Name+" ("+p.Message+")")
		}
	}
	if len(causes) == 0 {
		causes = storing
	}
	if len(causes) == 0 {
		return ""
	}
	return "Waiting for " + strings.Join(causes, ", ")
}

func groupKind(c *Component) schema.GroupKind {
	return c.Object.GetObjectKind().GroupVersionKind().GroupKind()
}

func phase(c *Claim, o Outcome, worst health.State) Phase {
	switch {
	case o.Ready:
		return Running
	case worst == health.Failed:
		return Failed
	case c.composed == 0:
		return Pending
	case c.wasReady():
		return Degraded
	default:
		return Deploying
	}
}
