package converge

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Ref names an object.
type Ref struct {
	Kind string
	Name string
}

func (r Ref) String() string { return r.Kind + "/" + r.Name }

// A Step is one call of the function that changed something.
type Step struct {
	// Number of the step, from 1.
	Number int

	// Claim is the claim that the function was called for.
	Claim Ref

	// Appeared are the objects that were created, in the order of their component names, in which
	// Crossplane applies them.
	Appeared []*unstructured.Unstructured

	// Changed are the objects that were changed, in the same order.
	Changed []*unstructured.Unstructured

	// Removed are the objects that were removed, in the same order.
	Removed []Ref
}

// A Result describes how a claim converged.
type Result struct {
	// Steps in their order. A claim that is composed by another converges before the other
	// continues.
	Steps []Step

	// Claim is the claim at the end, with its status.
	Claim *unstructured.Unstructured

	// Claims are the claim and all claims composed for it, at the end, with their statuses.
	Claims []*unstructured.Unstructured

	// Resources are all composed objects at the end, as the cluster has them,
	// by the claim that composes them and its component.
	Resources map[Ref]map[string]*unstructured.Unstructured

	// Rendered is what Crossplane applies of each of them, by the same keys.
	Rendered map[Ref]map[string]*unstructured.Unstructured

	// Adopted are the objects that existed already and were adopted by a claim, as they were before
	// that.
	Adopted []*unstructured.Unstructured

	// Ready is true when the claim's Ready condition is.
	Ready bool
}

func (r *Result) add(s Step) {
	if len(s.Appeared)+len(s.Changed)+len(s.Removed) == 0 {
		return
	}
	s.Number = len(r.Steps) + 1
	r.Steps = append(r.Steps, s)
}

func (r *Result) finish(w *world, root *object) {
	// These are copies, since the world may change afterwards.
	r.Claim = root.live.DeepCopy()
	r.Claims = []*unstructured.Unstructured{r.Claim}
	r.Resources = map[Ref]map[string]*unstructured.Unstructured{}
	r.Rendered = map[Ref]map[string]*unstructured.Unstructured{}
	r.Ready = conditionStatus(root.live, "Ready") == "True"
	for _, u := range w.adopted {
		r.Adopted = append(r.Adopted, u)
	}
	for _, o := range w.objects {
		if o.owner == nil {
			continue
		}
		at := o.owner.ref()
		if r.Resources[at] == nil {
			r.Resources[at] = map[string]*unstructured.Unstructured{}
			r.Rendered[at] = map[string]*unstructured.Unstructured{}
		}
		r.Resources[at][o.component], r.Rendered[at][o.component] = o.live.DeepCopy(), o.rendered
	}
	for _, o := range w.objects {
		// An object that composes others is a claim.
		if o.owner != nil && len(r.Resources[o.ref()]) > 0 {
			r.Claims = append(r.Claims, r.Resources[o.owner.ref()][o.component])
		}
	}
}

func conditionStatus(o *unstructured.Unstructured, typ string) string {
	for _, c := range conditions(o) {
		if c["type"] == typ {
			s, _ := c["status"].(string)
			return s
		}
	}
	return ""
}
