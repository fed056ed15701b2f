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

	// Claim that the function was called for.
	Claim Ref

	// Appeared, in the order of their component names, as Crossplane applies
	// them.
	Appeared []*unstructured.Unstructured

	// Changed, in the same order.
	Changed []*unstructured.Unstructured

	// Removed, in the same order.
	Removed []Ref
}

// A Result is how a claim converged.
type Result struct {
	// Steps in their order. A claim that is composed by another converges
	// before the other goes on.
	Steps []Step

	// Claim at the end, with its status.
	Claim *unstructured.Unstructured

	// Claims are the claim and all claims composed of it, at the end, with
	// their statuses.
	Claims []*unstructured.Unstructured

	// Resources are all composed objects at the end, as the cluster has them,
	// by the claim that composes them and its component.
	Resources map[Ref]map[string]*unstructured.Unstructured

	// Rendered is what Crossplane applies of each of them, by the same.
	Rendered map[Ref]map[string]*unstructured.Unstructured

	// Adopted are the objects that existed already and are made a claim's own, as they
	// were before that.
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
	// Copies, for the world may go on.
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
		// What composes something is a claim.
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
