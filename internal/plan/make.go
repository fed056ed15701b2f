package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

// A Planner plans edits of claims.
type Planner struct {
	// Schemas of the claims' kinds.
	Schemas xrd.Schemas

	// Compositions, one a file, one for each kind.
	Compositions fs.FS

	// Function that composes every kind of claim, with what it takes from outside, and
	// Storeplane's own images.
	Function func(compose.Source, images.Set) converge.Runner

	// Images are Storeplane's own, of the release that is to compose the claims. Where
	// they are nil a claim's are those that it runs.
	Images *images.Set

	// State of the cluster.
	State State

	// Now is the time of the plan.
	Now time.Time

	// Prices of what claims request. May be nil.
	Prices *Prices

	mu        sync.Mutex
	functions map[made]converge.Runner
}

// made is what a function was made with.
type made struct {
	source   compose.Source
	registry string
	digests  string
}

// function for a source and images, made once: each keeps goroutines of its own.
func (p *Planner) function(source compose.Source, own images.Set) converge.Runner {
	k := made{source: source, registry: own.Registry, digests: fmt.Sprint(own.Digests)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.functions == nil {
		p.functions = map[made]converge.Runner{}
	}
	if p.functions[k] == nil {
		p.functions[k] = p.Function(source, own)
	}
	return p.functions[k]
}

// Plan what it means to apply a claim. What the claim's author has to correct is the plan's
// refusal, everything else an error.
func (p *Planner) Plan(ctx context.Context, claim *unstructured.Unstructured) (*Claim, error) {
	e, err := p.edit(ctx, claim)
	if err != nil {
		return nil, err
	}
	out := &Claim{Object: objectOf(e.next), Exists: e.live != nil}
	if e.live != nil {
		out.Edits = fieldsOf(e.live, e.next, e.live, e.next)
	}
	if out.Guardrails, err = p.guard(ctx, e); err != nil {
		return nil, err
	}
	before, after, err := p.run(ctx, e)
	if converge.IsRefused(err) {
		out.Refusal = err.Error()
		return p.finish(out), nil
	}
	if err != nil {
		return nil, err
	}
	secret, err := p.madeOfSecrets(ctx, e, before)
	if err != nil {
		return nil, err
	}
	p.compare(out, e, before, after, secret)
	if !after.Ready {
		out.Waits, _, _ = unstructured.NestedString(after.Claim.Object, "status", "message")
	}
	return p.finish(out), nil
}

// finish a plan: everything that could not be read has been asked for by now.
func (p *Planner) finish(out *Claim) *Claim {
	out.Unknown = append(out.Unknown, p.State.Unknown()...)
	out.conclude()
	return out
}

// edit of a claim.
type edit struct {
	// tree is what the cluster has of the claim, and live the claim in it, nil where
	// there is none.
	tree []*unstructured.Unstructured
	live *unstructured.Unstructured

	// next is the claim with the edit.
	next *unstructured.Unstructured
}

func (p *Planner) edit(ctx context.Context, claim *unstructured.Unstructured) (*edit, error) {
	// It has a namespace then. What the API server drops is refused later.
	next, err := p.Schemas.Default(claim)
	if err != nil {
		return nil, err
	}
	tree, err := p.State.Tree(ctx, objectOf(next))
	if err != nil {
		return nil, fmt.Errorf("cannot read what the cluster has of %s: %w", objectOf(next), err)
	}
	e := &edit{tree: tree, next: withDefaults(claim, next)}
	for _, u := range tree {
		if keyOf(u) == keyOf(next) {
			e.live = u
		}
	}
	if e.live != nil {
		e.next = apply(e.live, e.next)
	}
	return e, nil
}

// withDefaults is a claim as it was written, with the defaults that it gets: unknown fields
// are still in it, for whoever refuses them.
func withDefaults(claim, defaulted *unstructured.Unstructured) *unstructured.Unstructured {
	out := claim.DeepCopy()
	out.SetNamespace(defaulted.GetNamespace())
	out.Object["spec"] = overlay(defaulted.Object["spec"], claim.Object["spec"])
	return out
}

// overlay of what was written over what has defaults.
func overlay(defaulted, written any) any {
	d, ok := defaulted.(map[string]any)
	w, also := written.(map[string]any)
	if !ok || !also {
		if written == nil {
			return defaulted
		}
		return written
	}
	out := map[string]any{}
	for k, v := range d {
		out[k] = v
	}
	for k, v := range w {
		out[k] = overlay(d[k], v)
	}
	return out
}

// apply a claim's file over the claim, as kubectl apply and GitOps tools do: its spec is the
// file's, its labels and annotations are both's.
func apply(live, file *unstructured.Unstructured) *unstructured.Unstructured {
	out := live.DeepCopy()
	crossplane, had, _ := unstructured.NestedFieldCopy(live.Object, "spec", "crossplane")
	out.Object["spec"] = map[string]any{}
	if spec, ok := file.DeepCopy().Object["spec"]; ok {
		out.Object["spec"] = spec
	}
	if _, own, _ := unstructured.NestedFieldNoCopy(file.Object, "spec", "crossplane"); had && !own {
		_ = unstructured.SetNestedField(out.Object, crossplane, "spec", "crossplane")
	}
	out.SetLabels(with(live.GetLabels(), file.GetLabels()))
	out.SetAnnotations(with(live.GetAnnotations(), file.GetAnnotations()))
	return out
}

func with(a, b map[string]string) map[string]string {
	if len(a)+len(b) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// run the claim as it is from what the cluster has until nothing changes any more, and
// then with the edit. A claim that does not exist, or that is refused as it is and so stays
// as it is, is run with the edit alone: nothing is before that.
func (p *Planner) run(ctx context.Context, e *edit) (before, after *converge.Result, err error) {
	r, in := p.renderer(e, drawn{now: p.Now, password: placeholder})
	if e.live == nil {
		after, err = r.Run(ctx, in)
		return nil, after, err
	}
	in.Claim = e.live
	m, before, err := r.Begin(ctx, in)
	if converge.IsRefused(err) {
		in.Claim = e.next
		after, err = r.Run(ctx, in)
		return nil, after, err
	}
	if err != nil {
		return nil, nil, err
	}
	after, err = m.Apply(ctx, e.next)
	return before, after, err
}

// renderer of a claim, with what it draws.
func (p *Planner) renderer(e *edit, source compose.Source) (*render.Renderer, render.Input) {
	r := &render.Renderer{Schemas: p.Schemas, Compositions: p.Compositions, Function: p.function(source, p.images(e.tree))}
	return r, render.Input{Claim: e.next, Existing: e.tree, Fetch: p.fetch(e), Serves: p.State.Serves}
}

// madeOfSecrets are the fields of what a claim composes whose values come of Secrets which
// could not be read: those that are others where other passwords and keys are drawn.
func (p *Planner) madeOfSecrets(ctx context.Context, e *edit, before *converge.Result) (map[key][]Field, error) {
	if before == nil || !p.State.Hides("Secret") {
		return nil, nil
	}
	// Certificates that are made a moment later are others in all of their lines.
	r, in := p.renderer(e, drawn{now: p.Now.Add(61 * time.Second), password: placeholder + "-2"})
	in.Claim = e.live
	again, err := r.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	out := map[key][]Field{}
	for _, p := range compare(objectsOf(before), objectsOf(again), nil) {
		out[keyOf(p.either())] = p.Fields
	}
	return out, nil
}

// fetch what the function requires. Where the installation's settings may not be read they
// are those that the claim was composed with last, which its status has.
func (p *Planner) fetch(e *edit) func(context.Context, *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	return func(ctx context.Context, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
		found, err := p.State.Fetch(ctx, sel)
		if err != nil || len(found) > 0 || e.live == nil || sel.GetKind() != settingsKind || !p.State.Hides(settingsKind) {
			return found, err
		}
		text, _, _ := unstructured.NestedString(e.live.Object, "status", "acceptedSettings")
		data := map[string]any{}
		if json.Unmarshal([]byte(text), &data) != nil {
			return nil, nil
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": sel.GetApiVersion(), "kind": settingsKind, "data": data}}
		u.SetName(sel.GetMatchName())
		return []*unstructured.Unstructured{u}, nil
	}
}

const settingsKind = "EnvironmentConfig"

// placeholder stands in for each password, and is longer than the shortest that is taken.
const placeholder = compose.Placeholder + "-0000000"

// drawn stands in for everything that is drawn at random: nothing of it is printed.
type drawn struct {
	now      time.Time
	password string
}

// Password implements compose.Source.
func (d drawn) Password() (string, error) { return d.password, nil }

// Now implements compose.Source.
func (d drawn) Now() time.Time { return d.now }

// compare what the claim becomes with what it is.
func (p *Planner) compare(out *Claim, e *edit, before, after *converge.Result, secret map[key][]Field) {
	had := objects{}
	if e.live != nil {
		had = existingObjects(e.live, e.tree)
	}
	as := had
	if before != nil {
		as = objectsOf(before)
		drift := readable(compare(had, as, stagesOf(before)), p.State.Hides, secret)
		out.Drift, out.DriftEffects = changesOf(drift), effectsOf(drift, had)
	}
	will := objectsOf(after)
	pairs := compare(as.adopt(after.Adopted), will, stagesOf(after))
	out.Changes, out.Effects = changesOf(pairs), effectsOf(pairs, had)
	if p.Prices != nil {
		out.Cost = p.Prices.compare(as, will)
	}
}

// guard the claim by the installation's rules, as they are in its settings.
func (p *Planner) guard(ctx context.Context, e *edit) (*Guardrails, error) {
	if p.Schemas.Validate(e.next) != nil {
		return nil, nil //nolint:nilnil // its refusal says more
	}
	settings, err := p.fetch(e)(ctx, render.Settings())
	if err != nil {
		return nil, fmt.Errorf("cannot read the installation's settings: %w", err)
	}
	defaulted, err := p.Schemas.Default(e.next)
	if err != nil {
		return nil, err
	}
	report, err := render.Guard(defaulted, settings)
	if err != nil {
		return nil, err
	}
	out := &Guardrails{Passed: report.Summary.Pass}
	for _, r := range report.Results {
		if r.Result == guardrails.Fail {
			out.Broken = append(out.Broken, r.Message)
		}
	}
	return out, nil
}

// Deletion of a claim.
func (p *Planner) Deletion(ctx context.Context, claim *unstructured.Unstructured) (*Claim, error) {
	e, err := p.edit(ctx, claim)
	if err != nil {
		return nil, err
	}
	out := &Claim{Object: objectOf(e.next), Exists: e.live != nil, Deletes: true}
	if e.live == nil {
		return p.finish(out), nil
	}
	had := existingObjects(e.live, e.tree)
	if by := protectedBy(had, e.live); by != nil {
		out.Refusal = fmt.Sprintf("%s is protected from deletion by %s: set spec.deletionProtection to false first", out.Object, objectOf(by))
		return p.finish(out), nil
	}
	pairs := compare(had, objects{}, nil)
	out.Changes, out.Effects = changesOf(pairs), effectsOf(pairs, had)
	if p.Prices != nil {
		out.Cost = p.Prices.compare(had, objects{})
	}
	return p.finish(out), nil
}

// protectedBy is the Usage that protects a claim, or nil.
func protectedBy(all objects, claim *unstructured.Unstructured) *unstructured.Unstructured {
	for _, o := range all {
		kind, _, _ := unstructured.NestedString(o.live.Object, "spec", "of", "kind")
		name, _, _ := unstructured.NestedString(o.live.Object, "spec", "of", "resourceRef", "name")
		if o.live.GetKind() == "Usage" && kind == claim.GetKind() && name == claim.GetName() {
			return o.live
		}
	}
	return nil
}
