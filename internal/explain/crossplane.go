package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/podfailure"
)

var (
	// step of a pipeline whose function could not be run:
	// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/composition_functions.go
	step = regexp.MustCompile(`cannot run (?:pipeline step|Composition pipeline step) "[^"]*"[^:]*: (.*)`)
	// component that could not be applied, and why.
	component = regexp.MustCompile(`cannot apply composed resource "([^"]+)"(?:[^:]*): (.*)`)
	// unreached function.
	unreached = regexp.MustCompile(`(?i)unavailable|connection refused|no such host|deadline|name resolver|no children to pick|cannot get gRPC|not healthy|cannot find an active`)
	overQuota = regexp.MustCompile(`exceeded quota: ([^,]+)`)
)

// crossplane says why Crossplane does not get on with a claim, or nil where it does.
func (f *facts) crossplane(claim *unstructured.Unstructured) *Cause {
	synced := conditionOf(claim, "Synced")
	c := &Cause{Object: objectOf(claim), Since: synced.since, rank: lasting}
	if synced.status == "" {
		at := claim.GetCreationTimestamp().Time
		if f.Now.Sub(at) < takenUpWithin {
			return nil
		}
		c.Message, c.Since = "Crossplane has not taken it up", &at
		f.packages(c, "Function")
		c.Do = []string{"Ask who runs Crossplane whether its pods run: kubectl -n crossplane-system get pods"}
		return c
	}
	if synced.status != "False" {
		// A pass that went on with what was refused says nothing of it but in the status.
		if e := f.lastRefusal(claim); e != nil && strings.Contains(statusText(claim, "message"), compose.Refuses) {
			return f.refused(c, e, e.Message)
		}
		return f.behind(claim, synced)
	}
	c.Evidence = append(c.Evidence, synced.evidence(claim))
	message := strings.TrimPrefix(synced.message, "cannot compose resources: ")
	if m := step.FindStringSubmatch(message); m != nil && unreached.MatchString(m[1]) {
		c.Message = "Crossplane cannot run Storeplane's function: " + m[1]
		f.packages(c, "Function")
		c.Do = []string{"Ask who runs Crossplane whether the function's pods run: kubectl -n crossplane-system get pods -l pkg.crossplane.io/function"}
		return c
	}
	if e := f.lastRefusal(claim); e != nil {
		// The condition has all that has failed in one text.
		return f.refused(c, e, e.Message)
	}
	if component.MatchString(message) {
		return f.refused(c, nil, message)
	}
	c.Message = "Crossplane cannot compose it: " + plain(message)
	return c
}

// refused component of a claim, by what Crossplane says of it.
func (f *facts) refused(c *Cause, e *corev1.Event, message string) *Cause {
	if e != nil {
		c.Evidence = append(c.Evidence, eventEvidence(e))
	}
	m := component.FindStringSubmatch(message)
	c.Message = "the API server refuses its component " + m[1] + ": " + plain(m[2])
	c.Do = []string{"Change the claim, or what refuses it: a policy, a quota, or Crossplane's rights"}
	f.quota(c, m[2])
	return c
}

// behind says of a claim whose newest edit Crossplane has not looked at why it does not.
func (f *facts) behind(claim *unstructured.Unstructured, synced condition) *Cause {
	responsive := conditionOf(claim, "Responsive")
	if !synced.isOld(claim) || responsive.status != "False" {
		return nil
	}
	return &Cause{
		Object: objectOf(claim), Message: "Crossplane has not observed its newest edit yet, since too much of it changes: " + strings.TrimSuffix(responsive.message, "."),
		Since: responsive.since, rank: passing, Evidence: []Evidence{responsive.evidence(claim)},
	}
}

// lastRefusal is the event by which Crossplane says what it could not apply.
func (f *facts) lastRefusal(claim *unstructured.Unstructured) *corev1.Event {
	for _, e := range slices.Backward(f.eventsOf[named{claim.GetKind(), claim.GetName()}]) {
		if e.Type == corev1.EventTypeWarning && component.MatchString(e.Message) && isAbout(e, claim) {
			return e
		}
	}
	return nil
}

// quota that a refusal names, with what is used of it.
func (f *facts) quota(c *Cause, refusal string) {
	m := overQuota.FindStringSubmatch(refusal)
	if m == nil {
		return
	}
	c.Do = []string{"Raise ResourceQuota " + m[1] + ", or claim less: kubectl -n " + c.Object.Namespace + " describe resourcequota " + m[1]}
	for _, q := range f.Quotas {
		if q.Name != m[1] {
			continue
		}
		var used []string
		for name, hard := range q.Status.Hard {
			of := q.Status.Used[name]
			used = append(used, fmt.Sprintf("%s %s of %s", name, of.String(), hard.String()))
		}
		slices.Sort(used)
		c.Evidence = append(c.Evidence, Evidence{Source: FromQuota, Object: plan.Object{APIVersion: "v1", Kind: "ResourceQuota", Namespace: q.Namespace, Name: q.Name}, Text: "used " + strings.Join(used, ", ")})
	}
}

// packages of a kind that are not healthy, and their pods, are evidence of a cause.
func (f *facts) packages(c *Cause, kind string) {
	label := "pkg.crossplane.io/" + strings.ToLower(kind)
	for _, u := range f.Packages {
		if u.GetKind() != kind || !strings.Contains(u.GetName(), "storeplane") {
			continue
		}
		for _, typ := range []string{"Installed", "Healthy"} {
			if cond := conditionOf(u, typ); cond.status != "" && cond.status != "True" {
				c.Evidence = append(c.Evidence, Evidence{Source: FromPackage, Object: objectOf(u), At: cond.since, Text: cond.evidence(u).Text})
			}
		}
		ready, pods := 0, 0
		for i := range f.Workers {
			p := &f.Workers[i]
			if p.Labels[label] != u.GetName() {
				continue
			}
			pods++
			if isReady(p) {
				ready++
			} else if why := podfailure.Why(podfailure.Pod{PodStatus: p.Status, Deleting: p.DeletionTimestamp != nil}, f.Now); why != nil {
				c.Evidence = append(c.Evidence, Evidence{Source: FromContainer, Object: podObject(p), Text: plain(why.String())})
			}
		}
		if !slices.Contains(f.Unknown, workersUnknown) {
			c.Evidence = append(c.Evidence, Evidence{Source: FromPackage, Object: objectOf(u), Text: fmt.Sprintf("pods that are ready: %d of %d", ready, pods)})
		}
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// ownFinalizers are Kubernetes', Crossplane's and the provider's.
var ownFinalizers = map[string]bool{
	metav1.FinalizerDeleteDependents: true, metav1.FinalizerOrphanDependents: true,
	"composite.apiextensions.crossplane.io": true, "finalizer.managedresource.crossplane.io": true,
}

// deletion that does not end.
func (f *facts) deletion(u *unstructured.Unstructured) *Cause {
	at := u.GetDeletionTimestamp().Time
	c := &Cause{Object: objectOf(u), Since: &at, rank: passing}
	var left []string
	for _, child := range f.children(u) {
		if child.GetDeletionTimestamp() == nil {
			continue
		}
		if of := f.deletion(child); len(child.GetFinalizers()) > 0 || child.GetKind() == "Pod" {
			return of
		}
		left = append(left, objectOf(child).String())
	}
	foreign := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(name string) bool { return ownFinalizers[name] })
	c.Evidence = []Evidence{{Source: FromCondition, Object: objectOf(u), At: &at, Text: "deletionTimestamp; finalizers: " + strings.Join(u.GetFinalizers(), ", ")}}
	switch {
	case u.GetKind() == "Pod":
		c.Message = "does not end within its grace period"
		if n := f.node(f.pods[u.GetName()].Spec.NodeName); n != nil {
			if of := f.nodeOf(f.pods[u.GetName()], n); of != nil {
				return of
			}
		}
	case len(foreign) > 0:
		c.rank, c.Message = lasting, "is being deleted: whoever has set finalizer "+strings.Join(foreign, ", ")+" must remove it, and has not"
	case len(left) > 0:
		c.Message = "is being deleted: " + some(left) + " must go before"
	case isManaged(u):
		c.rank, c.Message = lasting, "is being deleted: the provider must remove its finalizer, and has not"
		if synced := conditionOf(u, "Synced"); synced.status == "False" {
			c.Message = "is being deleted: " + synced.message
			c.Evidence = append(c.Evidence, synced.evidence(u))
		}
		f.packages(c, "Provider")
	default:
		c.Message = "is being deleted"
	}
	if f.Now.Sub(at) > time.Minute {
		c.Do = []string{"Look at what must go before: kubectl -n " + u.GetNamespace() + " describe " + strings.ToLower(u.GetKind()) + " " + u.GetName()}
	}
	return c
}

// most names of a list are printed.
const most = 3

// some of a list.
func some(names []string) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
}
