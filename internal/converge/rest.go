package converge

import (
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A version is an object of the world in one of its states.
type version struct {
	object *object
	number int
}

// inputs are what the last reconciliation of a claim has read of the world: the claim, what it
// composes, and what each of its requirements selected. The function's answer to the same inputs is
// the same.
type inputs struct {
	own      []version
	required map[string]required
}

// required is what a requirement selected.
type required struct {
	selector *fnv1.ResourceSelector
	selected []version
}

// note counts a change of an object since it was noted last.
func (o *object) note() {
	if o.noted != nil && Equal(o.noted, o.live.Object) {
		return
	}
	o.noted = runtime.DeepCopyJSON(o.live.Object)
	o.version++
}

// own returns the versions of a claim and of what it composes.
func (w *world) own(claim *object) []version {
	out := []version{{object: claim, number: claim.version}}
	for _, o := range w.composedBy(claim) {
		out = append(out, version{object: o, number: o.version})
	}
	return out
}

// selected returns the versions of the objects that a selector selects.
func (w *world) selected(sel *fnv1.ResourceSelector) []version {
	out := make([]version, 0)
	for _, o := range w.objects {
		if Selects(sel, o.live) {
			out = append(out, version{object: o, number: o.version})
		}
	}
	return out
}

// read returns the inputs of a claim as they are now, with the requirements that it had last.
func (w *world) read(claim *object) *inputs {
	in := &inputs{own: w.own(claim), required: map[string]required{}}
	if claim.read != nil {
		for name, r := range claim.read.required {
			in.required[name] = required{selector: r.selector, selected: w.selected(r.selector)}
		}
	}
	return in
}

// isAtRest reports whether another reconciliation of a claim would change nothing: it reads what
// the last one has read.
func (w *world) isAtRest(claim *object) bool {
	if claim.read == nil || !slices.Equal(claim.read.own, w.own(claim)) {
		return false
	}
	for _, r := range claim.read.required {
		if !slices.Equal(r.selected, w.selected(r.selector)) {
			return false
		}
	}
	return true
}

// areAtRest reports whether a claim and all claims among what it composes are at rest.
func (p *play) areAtRest(claim *object) bool {
	if !p.world.isAtRest(claim) {
		return false
	}
	for _, o := range p.world.composedBy(claim) {
		if p.Schemas.Has(o.live.GroupVersionKind()) && !p.areAtRest(o) {
			return false
		}
	}
	return true
}
