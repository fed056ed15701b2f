package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/text"
)

// pausedAnnotation is Crossplane's annotation: an object with the value "true" is not reconciled.
const pausedAnnotation = xpmeta.AnnotationKeyReconciliationPaused

// Explain explains the claim that is the first object of f.Tree, which must not be empty.
func Explain(f Facts) Explanation {
	x := index(f)
	claim := x.Tree[0]
	e := Explanation{Object: objectOf(claim), Unknown: f.Unknown}
	e.State, e.Since = x.stateOf(claim)
	all := x.problems(claim)
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
	e.redact()
	return e
}

// redact removes secrets and control characters from all text that comes from the cluster: it may
// contain credentials, or escape sequences that a terminal would obey.
func (e *Explanation) redact() {
	clean := func(s string) string { return text.Clip(appconfig.Redact(s), longest) }
	causes := e.Also
	if e.Cause != nil {
		causes = append([]Cause{*e.Cause}, e.Also...)
	}
	for i := range causes {
		causes[i].Message = clean(causes[i].Message)
		for j := range causes[i].Evidence {
			causes[i].Evidence[j].Text = clean(causes[i].Evidence[j].Text)
		}
		for j, do := range causes[i].Do {
			// A line break would start what looks like another remedy.
			causes[i].Do[j] = text.Line(appconfig.Redact(do), longest)
		}
	}
	if e.Cause != nil {
		e.Cause, e.Also = &causes[0], causes[1:]
	}
	for i := range e.Tree {
		e.Tree[i].Message = clean(e.Tree[i].Message)
	}
	for i := range e.Recent {
		e.Recent[i].Message = clean(e.Recent[i].Message)
	}
}

// StateOf returns the state of a claim, judged by the claim alone.
func StateOf(claim *unstructured.Unstructured) State {
	synced, ready := conditionOf(claim, "Synced"), conditionOf(claim, "Ready")
	observed := synced.status != "" && !synced.isOld(claim)
	switch {
	case claim.GetDeletionTimestamp() != nil:
		return Deleting
	case isPaused(claim):
		return Paused
	case observed && isRefusal(conditionOf(claim, appsv1.TypeAccepted)):
		return Refused
	case !observed, synced.status == "False", ready.status != "True", ready.isOld(claim):
		return NotReady
	}
	return Ready
}

// stateOf returns the state of a claim and when the claim entered it, or nil where that is unknown.
func (f *facts) stateOf(claim *unstructured.Unstructured) (State, *time.Time) {
	synced, ready := conditionOf(claim, "Synced"), conditionOf(claim, "Ready")
	state := StateOf(claim)
	switch state {
	case Deleting:
		return state, &claim.GetDeletionTimestamp().Time
	case Refused:
		return state, conditionOf(claim, appsv1.TypeAccepted).since
	case Paused:
		return state, synced.since
	case Ready:
		return state, ready.since
	case NotReady:
	}
	switch {
	case synced.status == "":
		at := claim.GetCreationTimestamp().Time
		return state, &at
	case synced.isOld(claim), ready.status == "True":
		// The condition describes the claim before its newest edit.
		return state, editedAt(claim)
	case synced.status == "False":
		return state, synced.since
	}
	return state, ready.since
}

// editedAt returns the time of the last edit of an object's spec that neither Crossplane nor the
// provider made, or nil.
func editedAt(u *unstructured.Unstructured) *time.Time {
	var last *time.Time
	for _, h := range edits(u) {
		if last == nil || h.At.After(*last) {
			last = &h.At
		}
	}
	return last
}

func isPaused(u *unstructured.Unstructured) bool {
	return u.GetAnnotations()[pausedAnnotation] == "true"
}

func isRefusal(accepted condition) bool {
	return accepted.status == "False" && accepted.reason != appsv1.ReasonSettingsInvalid
}

// problems returns the causes that keep a claim from being ready, the most important first.
func (f *facts) problems(claim *unstructured.Unstructured) []Cause {
	if isManaged(claim) {
		return list(f.managed(claim))
	}
	if StateOf(claim) == Ready {
		return nil
	}
	if c := f.itself(claim); c != nil {
		return []Cause{*c}
	}
	var out []Cause
	for _, u := range f.children(claim) {
		if isAside(claim, u) {
			continue
		}
		out = append(out, f.object(u)...)
	}
	if c := f.stated(claim); c != nil {
		out = append(out, *c)
	}
	slices.SortStableFunc(out, func(a, b Cause) int { return cmp.Compare(a.rank, b.rank) })
	return out
}

// isAside reports whether a claim can be ready without an object that it composes: the backups of a
// database, and the Jobs for them.
func isAside(claim, u *unstructured.Unstructured) bool {
	return claim.GetKind() == appsv1.DatabaseClusterKind && (isManaged(u) || u.GetKind() == "Job")
}

// itself returns the cause that lies in the claim and not in an object that it composes, or nil.
func (f *facts) itself(claim *unstructured.Unstructured) *Cause {
	accepted := conditionOf(claim, appsv1.TypeAccepted)
	c := &Cause{Object: objectOf(claim), Since: accepted.since, rank: lasting, Evidence: []Evidence{accepted.evidence(claim)}}
	switch state := StateOf(claim); {
	case state == Deleting:
		return f.deletion(claim)
	case state == Paused:
		return paused(claim)
	case state == Refused && accepted.reason == appsv1.ReasonInternalError:
		c.Message = "Storeplane's function fails: " + accepted.message
		c.Do = []string{"Report it, with the function's log: until then what runs is left as it is"}
		return c
	case state == Refused:
		c.Message = "is refused: " + accepted.message
		c.Do = []string{"Edit the claim as the message asks: until then nothing that runs is changed"}
		return c
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

// gates are the conditions that must be True for a claim to be ready, the most specific first.
var gates = []string{
	appsv1.TypeMigrationReady, appsv1.TypeConfigReady, appsv1.TypeStorageHealthy, appsv1.TypeReplicationHealthy, appsv1.TypeDatabasesReady,
	platformv1.TypeDatabaseReady, platformv1.TypeCacheReady, platformv1.TypeBackendReady, platformv1.TypeFrontendReady, platformv1.TypeIngressReady,
}

// stated returns the cause that the status of the claim gives: the first condition of gates that is
// False, or else the message of the status. It is nil where there is neither.
func (f *facts) stated(claim *unstructured.Unstructured) *Cause {
	for _, typ := range gates {
		if c := conditionOf(claim, typ); c.status == "False" && c.message != "" {
			return &Cause{Object: objectOf(claim), Message: c.message, Since: c.since, rank: stated, Evidence: []Evidence{c.evidence(claim)}}
		}
	}
	message := statusText(claim, "message")
	if message == "" {
		return nil
	}
	ready := conditionOf(claim, "Ready")
	return &Cause{Object: objectOf(claim), Message: message, Since: ready.since, rank: progressing, Evidence: []Evidence{ready.evidence(claim)}}
}

// isGeneral holds the types of conditions that describe a whole object and are evaluated
// separately.
var isGeneral = map[string]bool{"Ready": true, "Synced": true, appsv1.TypeStalled: true, appsv1.TypeResponsive: true, appsv1.TypeAccepted: true}

// warnings returns what is wrong with a claim and the objects below it without keeping it from
// being ready: conditions that are False, CronJobs whose newest Job failed, and managed resources
// that are not ready.
func (f *facts) warnings(claim *unstructured.Unstructured) []Cause {
	var out []Cause
	ready := StateOf(claim) == Ready
	for _, c := range conditionsOf(claim) {
		always := c.typ == appsv1.TypeResponsive || c.reason == appsv1.ReasonSettingsInvalid
		if c.status != "False" || c.message == "" || !always && (!ready || isGeneral[c.typ]) {
			continue
		}
		w := Cause{Object: objectOf(claim), Message: c.message, Since: c.since, Evidence: []Evidence{c.evidence(claim)}}
		if c.typ == appsv1.TypeResponsive {
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
		case isManaged(u), isAside(claim, u):
			out = append(out, f.object(u)...)
		}
	}
	return slices.DeleteFunc(out, func(c Cause) bool { return c.rank >= passing })
}

// also returns the other causes that differ from the first one and from each other, without those
// of rank passing or less important.
func also(first *Cause, others []Cause) []Cause {
	var out []Cause
	said := []Cause{}
	if first != nil {
		said = append(said, *first)
	}
	for _, c := range others {
		if c.rank >= passing || slices.ContainsFunc(said, func(s Cause) bool { return isSameCause(s, c) }) {
			continue
		}
		said, out = append(said, c), append(out, c)
	}
	return out
}

// isSameCause reports whether two causes are the same, or one repeats the message of the other, as
// a claim does with the messages of the objects below it.
func isSameCause(a, b Cause) bool {
	if a.Object == b.Object {
		return a.Message == b.Message || len(a.Evidence) > 0 && len(b.Evidence) > 0 && a.Evidence[0] == b.Evidence[0]
	}
	return a.Message != b.Message && (strings.Contains(a.Message, b.Message) || strings.Contains(b.Message, a.Message))
}

// claimKinds are the kinds of claims.
var claimKinds = map[schema.GroupKind]bool{
	{Group: appsv1.GroupVersion.Group, Kind: appsv1.DatabaseClusterKind}:           true,
	{Group: appsv1.GroupVersion.Group, Kind: appsv1.WebAppKind}:                    true,
	{Group: platformv1.GroupVersion.Group, Kind: platformv1.EcommercePlatformKind}: true,
}

// isClaim reports whether an object is one of Storeplane's claims.
func isClaim(u *unstructured.Unstructured) bool { return claimKinds[u.GroupVersionKind().GroupKind()] }

// newestOf returns the object that was created last, or nil where there are none.
func newestOf(all []*unstructured.Unstructured) *unstructured.Unstructured {
	if len(all) == 0 {
		return nil
	}
	return slices.MaxFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	})
}
