package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/xcrd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/converge"
)

// key identifies an object in the claim's namespace.
type key struct {
	schema.GroupKind

	name string
}

func keyOf(u *unstructured.Unstructured) key {
	return key{GroupKind: u.GroupVersionKind().GroupKind(), name: u.GetName()}
}

func (o Object) key() key {
	return key{GroupKind: schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind(), name: o.Name}
}

func objectOf(u *unstructured.Unstructured) Object {
	return Object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// composed is an object that a claim composes.
type composed struct {
	component string
	// owner is the claim that composes it, with its status.
	owner *unstructured.Unstructured
	live  *unstructured.Unstructured
	// applied is what Crossplane applies of it, nil where that is not known.
	applied *unstructured.Unstructured
}

// objects are those that exist at one time.
type objects map[key]composed

// objectsOf returns the objects that a claim has in a result.
func objectsOf(r *converge.Result) objects {
	claims := map[converge.Ref]*unstructured.Unstructured{}
	for _, c := range r.Claims {
		claims[converge.Ref{Kind: c.GetKind(), Name: c.GetName()}] = c
	}
	out := objects{}
	for ref, components := range r.Resources {
		for component, u := range components {
			out[keyOf(u)] = composed{component: component, owner: claims[ref], live: u, applied: r.Rendered[ref][component]}
		}
	}
	return out
}

// existingObjects returns the objects of a claim in the cluster.
func existingObjects(claim *unstructured.Unstructured, tree []*unstructured.Unstructured) objects {
	out := objects{}
	for _, u := range tree {
		by := metav1.GetControllerOf(u)
		component := u.GetAnnotations()[xcrd.AnnotationKeyCompositionResourceName]
		if by == nil || by.UID != claim.GetUID() || component == "" {
			continue
		}
		out[keyOf(u)] = composed{component: component, owner: claim, live: u}
		maps.Copy(out, existingObjects(u, tree))
	}
	return out
}

// pair is an object before and after. One of them may be nil.
type pair struct {
	Change

	component     string
	owner         *unstructured.Unstructured
	before, after *unstructured.Unstructured
}

// adopt returns the objects with those that the edit adopts, and that have no owner before it.
func (all objects) adopt(adopted []*unstructured.Unstructured) objects {
	out := maps.Clone(all)
	for _, u := range adopted {
		if _, had := all[keyOf(u)]; !had {
			out[keyOf(u)] = composed{live: u}
		}
	}
	return out
}

// compare returns the differences between the objects before and after, sorted by stage, kind and
// name.
func compare(before, after objects, stages map[key]int) []pair {
	var out []pair
	for k, a := range after {
		b, was := before[k]
		p := pair{component: a.component, owner: a.owner, after: a.live, Change: Change{Stage: stages[k], Action: Create, Object: objectOf(a.live), Owner: objectOf(a.owner)}}
		if was {
			p.Action, p.before = Update, b.live
			p.Fields = fieldsOf(b.live, a.live, appliedOf(a, b)...)
			if b.owner == nil {
				p.Action = Adopt
			} else if len(p.Fields) == 0 {
				continue
			}
		}
		out = append(out, p)
	}
	for k, b := range before {
		if _, is := after[k]; is {
			continue
		}
		out = append(out, pair{component: b.component, owner: b.owner, before: b.live, Change: Change{Stage: stages[k], Action: Delete, Object: objectOf(b.live), Owner: objectOf(b.owner)}})
	}
	slices.SortFunc(out, func(x, y pair) int {
		return cmp.Or(cmp.Compare(x.Stage, y.Stage), cmp.Compare(x.Object.Kind, y.Object.Kind), cmp.Compare(x.Object.Name, y.Object.Name))
	})
	return out
}

func appliedOf(all ...composed) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, c := range all {
		if c.applied != nil {
			out = append(out, c.applied)
		}
	}
	return out
}

// stagesOf returns the stage in which each object is created, or else first changed.
func stagesOf(r *converge.Result) map[key]int {
	out := map[key]int{}
	note := func(k key, stage int) {
		if out[k] == 0 {
			out[k] = stage
		}
	}
	for _, s := range r.Steps {
		for _, u := range slices.Concat(s.Appeared, s.Changed) {
			note(keyOf(u), s.Number)
		}
	}
	return out
}

func changesOf(pairs []pair) []Change {
	out := make([]Change, 0, len(pairs))
	for _, p := range pairs {
		out = append(out, p.Change)
	}
	return out
}

// readable leaves out the differences of objects that could not be read, since these may exist, and
// those of fields that are derived from Secrets which could not be read.
func readable(pairs []pair, hides func(Object) bool, secret map[key][]Field) []pair {
	var out []pair
	for _, p := range pairs {
		made := secret[keyOf(p.either())]
		p.Fields = slices.DeleteFunc(p.Fields, func(f Field) bool {
			return slices.ContainsFunc(made, func(m Field) bool {
				// Single lines of two certificates may be equal by chance.
				a, _, _ := strings.Cut(f.Path, linePath)
				b, _, _ := strings.Cut(m.Path, linePath)
				return within(a, b) || within(b, a)
			})
		})
		if !hides(p.Object) && (p.Action != Update || len(p.Fields) > 0) {
			out = append(out, p)
		}
	}
	return out
}
