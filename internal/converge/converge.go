package converge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/xrd"
)

// rounds is the number of rounds after which a claim must have settled. A round starts everything
// that waits only for what was started before, so this is far above the length of any chain of
// dependencies.
const rounds = 50

// A Runner is a composition function.
type Runner interface {
	RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error)
}

// A Simulator simulates how claims converge.
type Simulator struct {
	// Function is the function that composes every kind of claim.
	Function Runner

	// Schemas are those of the claims. An object of one of these kinds is a claim wherever it is
	// composed.
	Schemas xrd.Schemas

	// Bootstrap is what the Composition's step requires before its function
	// is called, by requirement name.
	Bootstrap map[string]*fnv1.ResourceSelector

	// RequiredSchemas are the schemas that the Compositions' steps require, by requirement name, of
	// the kinds that the cluster serves.
	RequiredSchemas map[string]*fnv1.Schema

	// Cluster contains objects that exist beside the claim, like an EnvironmentConfig.
	Cluster []*unstructured.Unstructured

	// Existing contains what the cluster has of the claim, with managed fields: the claim itself,
	// if it was created before, what it composes, and what the claims among that compose.
	Existing []*unstructured.Unstructured

	// Fetch returns other existing objects that a function requires under a name. May be nil.
	Fetch func(ctx context.Context, requirement string, selector *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error)

	// Pods simulates what the pods of a claim's objects do to these objects once they run. May be
	// nil.
	Pods func(composed []*unstructured.Unstructured)

	// Refused is called with a composed claim that is refused, while everything else continues as
	// it does on a cluster. If it is nil, such a refusal ends the run.
	Refused func(*RefusedError)

	// Unchecked is true if the function is trusted: statuses that it desires are not validated by
	// the claims' schemas, and it gets requests instead of copies of them. That takes half of the
	// time.
	Unchecked bool

	// Written is called with a claim after each write of its status. May be nil.
	Written func(claim *unstructured.Unstructured)
}

// Run simulates a claim until nothing changes any more. It returns an error if the claim, or
// anything that is composed for it, is refused, and if it does not settle.
func (s *Simulator) Run(ctx context.Context, claim *unstructured.Unstructured) (*Result, error) {
	_, r, err := s.Begin(ctx, claim)
	return r, err
}

// Begin is like Run, for a claim that is edited afterwards.
func (s *Simulator) Begin(ctx context.Context, claim *unstructured.Unstructured) (*Simulation, *Result, error) {
	live, err := s.admit(existing(s.Existing, claim), claim)
	if err != nil {
		return nil, nil, err
	}
	w := newWorld(s.Cluster)
	m := &Simulation{world: w, root: w.create(live), simulator: s}
	m.root.existed = existing(s.Existing, live) != nil
	if err := w.seed(m.root, s.Existing); err != nil {
		return nil, nil, err
	}
	r, err := m.settle(ctx)
	if err != nil {
		return nil, nil, err
	}
	return m, r, nil
}

// A Simulation is a claim that has settled.
type Simulation struct {
	simulator *Simulator
	world     *world
	root      *object
}

// Apply applies the claim with an edit, and simulates it until nothing changes any more. The steps
// of the result are those of the edit.
func (m *Simulation) Apply(ctx context.Context, claim *unstructured.Unstructured) (*Result, error) {
	live, err := m.simulator.admit(m.root.live, claim)
	if err != nil {
		return nil, err
	}
	m.root.live = live
	m.root.note()
	return m.settle(ctx)
}

func (m *Simulation) settle(ctx context.Context) (*Result, error) {
	p := &play{Simulator: m.simulator, world: m.world, result: &Result{}}
	if err := p.settle(ctx, m.root); err != nil {
		return nil, err
	}
	p.result.finish(m.world, m.root)
	return p.result, nil
}

// play is one run of a Simulator.
type play struct {
	*Simulator

	world  *world
	result *Result
}

// settle reconciles a claim, and all claims composed for it, until nothing changes any more.
func (p *play) settle(ctx context.Context, claim *object) error {
	var before *snapshot
	for round := range rounds {
		if p.areAtRest(claim) {
			return nil
		}
		if round == rounds-1 {
			before = p.world.snapshot()
		}
		steps := len(p.result.Steps)
		if !p.world.isAtRest(claim) {
			if err := p.reconcile(ctx, claim); err != nil {
				return err
			}
		}
		if err := p.run(ctx, claim); err != nil {
			return err
		}
		// A claim that existed in the cluster is usually at rest, but for its status, which has the
		// simulation's times now.
		if claim.existed && round == 0 && len(p.result.Steps) == steps && conditionStatus(claim.live, "Ready") == "True" {
			claim.read = p.world.read(claim)
			return nil
		}
	}
	return fmt.Errorf("cannot settle %s: after %d rounds these still change:\n  %s", claim.ref(), rounds, strings.Join(p.world.changesSince(before), "\n  "))
}

// run settles the claims among what a claim composes, and heals all other objects.
func (p *play) run(ctx context.Context, claim *object) error {
	composed := make([]*unstructured.Unstructured, 0)
	for _, o := range p.world.composedBy(claim) {
		if p.Schemas.Has(o.live.GroupVersionKind()) {
			if err := p.settle(ctx, o); err != nil && !p.passes(err) {
				return fmt.Errorf("cannot settle what %s composes: %w", claim.ref(), err)
			}
		} else {
			Heal(o.live)
		}
		composed = append(composed, o.live)
	}
	if p.Pods != nil {
		p.Pods(composed)
	}
	for _, o := range p.world.composedBy(claim) {
		o.note()
	}
	return nil
}

// passes reports whether a run continues after an error: if it is about a composed claim that is
// refused, and the caller has set Refused.
func (p *play) passes(err error) bool {
	refused, ok := errors.AsType[*RefusedError](err)
	if !ok || p.Refused == nil {
		return false
	}
	p.Refused(refused)
	return true
}

// reconcile reconciles a claim once, as Crossplane does.
func (p *play) reconcile(ctx context.Context, claim *object) error {
	rsp, err := p.call(ctx, claim)
	if err != nil {
		return fmt.Errorf("cannot compose %s: %w", claim.ref(), err)
	}
	if msg := refusal(rsp); msg != "" {
		return &RefusedError{Claim: claim.ref(), Message: msg}
	}

	step := Step{Claim: claim.ref()}
	desired, err := render(claim.live, rsp)
	if err != nil {
		return fmt.Errorf("cannot compose %s: %w", claim.ref(), err)
	}
	for _, o := range p.world.composedBy(claim) {
		if _, ok := desired[o.component]; !ok {
			p.world.remove(o)
			step.Removed = append(step.Removed, o.ref())
		}
	}
	for _, name := range sortedKeys(desired) {
		change, o, err := p.apply(claim, name, desired[name])
		if err != nil {
			return fmt.Errorf("cannot apply component %s of %s: %w", name, claim.ref(), err)
		}
		switch change {
		case appeared:
			step.Appeared = append(step.Appeared, o.rendered.DeepCopy())
		case changed:
			step.Changed = append(step.Changed, o.rendered.DeepCopy())
		case unchanged:
		}
	}
	if err := p.setStatus(claim, rsp); err != nil {
		return fmt.Errorf("cannot write status of %s: %w", claim.ref(), err)
	}
	p.result.add(step)
	return nil
}

// apply applies a desired object. A claim is checked and defaulted as by an API server.
func (p *play) apply(owner *object, component string, desired *unstructured.Unstructured) (change, *object, error) {
	if !p.Schemas.Has(desired.GroupVersionKind()) {
		return p.world.apply(owner, component, desired, normalize)
	}
	schema, err := p.Schemas.For(desired)
	if err != nil {
		return unchanged, nil, err
	}
	if old := p.world.find(keyOf(desired)); old == nil {
		err = schema.Validate(desired)
	} else {
		err = schema.ValidateUpdate(old.live, desired)
	}
	if err != nil {
		return unchanged, nil, err
	}
	return p.world.apply(owner, component, desired, schema.Default)
}

// A RefusedError is about a claim that its definition accepts and the function refuses.
type RefusedError struct {
	Claim   Ref
	Message string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s is refused: %s", e.Claim, e.Message) }

// IsRefused reports whether an error is an error of the claim, with a message for its author.
func IsRefused(err error) bool {
	var refused *RefusedError
	var invalid *xrd.InvalidError
	return errors.As(err, &refused) || errors.As(err, &invalid)
}
