package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

// pausedAnnotation is Crossplane's: while it is "true" nothing is done about the object.
const pausedAnnotation = "crossplane.io/paused"

// takenUpWithin is how long an object may be without any condition.
const takenUpWithin = 5 * time.Second

// Explain the claim that is the first of the facts' tree, which must not be empty.
func Explain(f Facts) Explanation {
	x := index(f)
	claim := x.Tree[0]
	e := Explanation{Object: objectOf(claim), Unknown: f.Unknown}
	e.State, e.Since = stateOfClaim(claim)
	all := x.troubles(claim)
	if e.State != Ready {
		first := Cause{Object: e.Object, Message: "is on its way", rank: progressing}
		if len(all) > 0 {
			first, all = all[0], all[1:]
		}
		e.Cause = &first
	}
	e.Also = also(e.Cause, append(all, x.warnings(claim)...))
	e.Tree = x.tree(claim, 0)
	e.Recent = x.recent(claim)
	return e
}

// StateOf a claim.
func StateOf(claim *unstructured.Unstructured) State {
	s, _ := stateOfClaim(claim)
	return s
}

// stateOfClaim and since when it is in it.
func stateOfClaim(claim *unstructured.Unstructured) (State, *time.Time) {
	synced, ready, accepted := conditionOf(claim, "Synced"), conditionOf(claim, "Ready"), conditionOf(claim, compose.ConditionAccepted)
	switch {
	case claim.GetDeletionTimestamp() != nil:
		return Deleting, &claim.GetDeletionTimestamp().Time
	case isPaused(claim):
		return Paused, synced.since
	case isRefusal(accepted):
		return Refused, accepted.since
	case synced.status == "False":
		return NotReady, synced.since
	case synced.status == "" || synced.isOld(claim):
		at := claim.GetCreationTimestamp().Time
		return NotReady, cmp.Or(ready.since, &at)
	case ready.status != "True" || ready.isOld(claim):
		return NotReady, ready.since
	}
	return Ready, ready.since
}

func isPaused(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[pausedAnnotation] == "true"
}

func isRefusal(accepted condition) bool {
	return accepted.status == "False" && accepted.reason != appsv1.ReasonSettingsInvalid
}

// troubles of a claim that keep it from being ready, the one that counts most first.
func (f *facts) troubles(claim *unstructured.Unstructured) []Cause {
	if state, _ := stateOfClaim(claim); state == Ready {
		return nil
	}
	if isManaged(claim) {
		return list(f.managed(claim))
	}
	if c := f.itself(claim); c != nil {
		return []Cause{*c}
	}
	var out []Cause
	for _, u := range f.children(claim) {
		out = append(out, f.object(u)...)
	}
	// What a claim says itself follows from what is wrong with its objects.
	if c := f.told(claim); c != nil && !slices.ContainsFunc(out, func(c Cause) bool { return c.rank == lasting }) {
		out = append(out, *c)
	}
	slices.SortStableFunc(out, func(a, b Cause) int { return cmp.Compare(a.rank, b.rank) })
	return out
}

// itself is what is wrong with a claim before anything of it is looked at.
func (f *facts) itself(claim *unstructured.Unstructured) *Cause {
	if claim.GetDeletionTimestamp() != nil {
		return f.deletion(claim)
	}
	if isPaused(claim) {
		return paused(claim)
	}
	if accepted := conditionOf(claim, compose.ConditionAccepted); isRefusal(accepted) {
		return &Cause{
			Object: objectOf(claim), Message: "is refused: " + accepted.message, Since: accepted.since, rank: lasting,
			Evidence: []Evidence{accepted.evidence(claim)},
			Do:       []string{"Edit the claim as the message says: until then what runs is left as it is"},
		}
	}
	return f.crossplane(claim)
}

func paused(u *unstructured.Unstructured) *Cause {
	return &Cause{
		Object: objectOf(u), Message: "is paused by annotation " + pausedAnnotation, Since: conditionOf(u, "Synced").since, rank: lasting,
		Evidence: []Evidence{conditionOf(u, "Synced").evidence(u)},
		Do:       []string{"kubectl annotate -n " + u.GetNamespace() + " " + strings.ToLower(u.GetKind()) + " " + u.GetName() + " " + pausedAnnotation + "-"},
	}
}

// told is what a claim says itself: what of its conditions has failed, or else what it waits
// for.
func (f *facts) told(claim *unstructured.Unstructured) *Cause {
	for _, c := range conditionsOf(claim) {
		if c.status != "False" || c.message == "" || isGeneral[c.typ] {
			continue
		}
		return &Cause{Object: objectOf(claim), Message: c.message, Since: c.since, rank: reported, Evidence: []Evidence{c.evidence(claim)}}
	}
	message := statusText(claim, "message")
	if message == "" {
		return nil
	}
	return &Cause{Object: objectOf(claim), Message: message, Since: conditionOf(claim, "Ready").since, rank: progressing, Evidence: []Evidence{conditionOf(claim, "Ready").evidence(claim)}}
}

// isGeneral are the conditions that say of a whole object how it is, and that are looked at by
// themselves.
var isGeneral = map[string]bool{"Ready": true, "Synced": true, "Stalled": true, "Responsive": true, compose.ConditionAccepted: true}

// warnings of a claim and of those below: conditions that are False though the claim is
// ready, CronJobs whose last Job failed, and managed resources.
func (f *facts) warnings(claim *unstructured.Unstructured) []Cause {
	var out []Cause
	ready := StateOf(claim) == Ready
	for _, c := range conditionsOf(claim) {
		always := c.typ == "Responsive" || c.reason == appsv1.ReasonSettingsInvalid
		if c.status != "False" || c.message == "" || !always && (!ready || isGeneral[c.typ]) {
			continue
		}
		w := Cause{Object: objectOf(claim), Message: c.message, Since: c.since, Evidence: []Evidence{c.evidence(claim)}}
		if c.typ == "Responsive" {
			w.Message = "changes often, so that Crossplane reconciles it at intervals alone: " + strings.TrimSuffix(c.message, ".")
			w.Do = []string{"It passes by itself once what is in the claim does not change any more"}
		}
		out = append(out, w)
	}
	for _, u := range f.children(claim) {
		switch {
		case isClaim(u):
			out = append(out, f.warnings(u)...)
		case u.GetKind() == "CronJob":
			out = append(out, f.cronJob(u)...)
		case isManaged(u):
			out = append(out, f.object(u)...)
		}
	}
	return slices.DeleteFunc(out, func(c Cause) bool { return c.rank >= passing })
}

// also are causes beside the first that say something else.
func also(first *Cause, others []Cause) []Cause {
	var out []Cause
	said := []Cause{}
	if first != nil {
		said = append(said, *first)
	}
	for _, c := range others {
		if c.rank >= passing || slices.ContainsFunc(said, func(s Cause) bool { return saysSame(s, c) }) {
			continue
		}
		said, out = append(said, c), append(out, c)
	}
	return out
}

func saysSame(a, b Cause) bool {
	return a.Object == b.Object && a.Message == b.Message || strings.Contains(a.Message, b.Message) || strings.Contains(b.Message, a.Message)
}

// isClaim tells whether an object is composed of others.
func isClaim(u *unstructured.Unstructured) bool {
	_, ok, _ := unstructured.NestedMap(u.Object, "spec", "crossplane")
	return ok
}

// newestOf objects by when they were made.
func newestOf(all []*unstructured.Unstructured) *unstructured.Unstructured {
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}
