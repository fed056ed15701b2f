package explain

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/podfailure"
)

var (
	// step matches the message about a pipeline step whose function could not be run, and its
	// reason. Storeplane's Compositions have one step, named storeplane:
	// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/composition_functions.go
	step = regexp.MustCompile(`cannot run Composition pipeline step "storeplane"[^:]*: (.*)`)
	// component matches the message about a component that could not be applied, and its reason
	// without what Crossplane appends about its own permissions.
	component = regexp.MustCompile(`cannot apply composed resource "([^"]+)"(?:[^:]*): (.*?)(?:, system:serviceaccount:.*)?$`)
	// unsynced matches the list of unsynced components in the condition.
	unsynced = regexp.MustCompile(`Unsynced resources: (.*)`)
	// unreached matches the reasons of a function that cannot be reached: codes of gRPC, and
	// Crossplane's errors about a function that is not installed.
	unreached = regexp.MustCompile(`code = (Unavailable|DeadlineExceeded)|cannot get gRPC|no children to pick|cannot find an active|connection error`)
	overQuota = regexp.MustCompile(`exceeded quota: ([^,]+)`)
)

// crossplane returns why Crossplane does not reconcile a claim, or nil where it does.
func (f *facts) crossplane(claim *unstructured.Unstructured) *Cause {
	synced := conditionOf(claim, "Synced")
	c := &Cause{Object: objectOf(claim), Since: synced.since, rank: lasting}
	switch {
	case synced.status == "":
		at := claim.GetCreationTimestamp().Time
		if f.Now.Sub(at) < observedWithin {
			return nil
		}
		c.Message, c.Since = "Crossplane has not observed it", &at
		return f.unobserved(c, "Function")
	case synced.isOld(claim):
		return f.behind(claim)
	case synced.status == "False":
		return f.unsynced(claim, c, synced)
	}
	// A reconciliation that continued after a refusal reports it in the status alone.
	if strings.Contains(statusText(claim, "message"), compose.Refuses) {
		if e := f.lastRefusal(claim, nil); e != nil {
			return f.refused(c, e, e.Message)
		}
	}
	return nil
}

// observedWithin is how long an object may be without a condition about its newest generation.
const observedWithin = 10 * time.Second

// unobserved adds the state of the package that should have observed the object to a cause.
func (f *facts) unobserved(c *Cause, kind string) *Cause {
	f.packages(c, kind)
	c.Do = []string{"Check that Crossplane and its packages run: kubectl -n crossplane-system get pods"}
	return c
}

// behind returns why Crossplane has not observed the newest edit of a claim, or nil.
func (f *facts) behind(claim *unstructured.Unstructured) *Cause {
	responsive := conditionOf(claim, appsv1.TypeResponsive)
	c := &Cause{Object: objectOf(claim), Since: editedAt(claim), rank: passing}
	switch {
	case responsive.status == "False":
		c.Message = "Crossplane has not observed its newest edit yet, since too much of it changes: " + strings.TrimSuffix(responsive.message, ".")
		c.Evidence = []Evidence{responsive.evidence(claim)}
		return c
	case c.Since == nil || f.Now.Sub(*c.Since) < observedWithin:
		return nil
	}
	c.rank, c.Message = lasting, "Crossplane has not observed its newest edit"
	return f.unobserved(c, "Function")
}

// unsynced returns why Crossplane could not compose a claim.
func (f *facts) unsynced(claim *unstructured.Unstructured, c *Cause, synced condition) *Cause {
	c.Evidence = append(c.Evidence, synced.evidence(claim))
	if m := step.FindStringSubmatch(synced.message); m != nil && unreached.MatchString(m[1]) {
		c.Message = "Crossplane cannot run Storeplane's function: " + m[1]
		return f.unobserved(c, "Function")
	}
	if m := component.FindStringSubmatch(synced.message); m != nil {
		return f.refused(c, f.lastRefusal(claim, []string{m[1]}), synced.message)
	}
	if m := unsynced.FindStringSubmatch(synced.message); m != nil {
		// The reason is in the events alone.
		if e := f.lastRefusal(claim, strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' })); e != nil {
			return f.refused(c, e, e.Message)
		}
	}
	c.Message = "Crossplane cannot compose it: " + strings.TrimPrefix(synced.message, "cannot compose resources: ")
	return c
}

// lastRefusal returns the last event by which Crossplane reports that it could not apply one of
// some components, or any component where of is nil. It is nil where there is none.
func (f *facts) lastRefusal(claim *unstructured.Unstructured, of []string) *corev1.Event {
	for _, e := range slices.Backward(f.eventsOf[named{claim.GetKind(), claim.GetName()}]) {
		m := component.FindStringSubmatch(e.Message)
		if m != nil && e.Type == corev1.EventTypeWarning && isAbout(e, claim) && (of == nil || slices.Contains(of, m[1])) {
			return e
		}
	}
	return nil
}

// refused completes a cause with the component that the API server refuses, and its reason.
func (f *facts) refused(c *Cause, e *corev1.Event, message string) *Cause {
	if e != nil {
		c.Evidence = append(c.Evidence, eventEvidence(e))
		message = e.Message // Without what else has failed.
	}
	m := component.FindStringSubmatch(message)
	c.Message = "the API server refuses its component " + m[1] + ": " + m[2]
	c.Do = []string{"Change the claim, or what refuses it: a policy, a quota, or Crossplane's rights"}
	f.quota(c, m[2])
	return c
}

// quota adds the usage of the ResourceQuota that a refusal names. Other programs write refusals
// too: only a valid object name may become part of a command.
func (f *facts) quota(c *Cause, refusal string) {
	m := overQuota.FindStringSubmatch(refusal)
	if m == nil || len(validation.IsDNS1123Subdomain(m[1])) > 0 {
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

// packages adds what is unhealthy in Storeplane's packages of a kind, and in their pods, to the
// evidence.
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
			} else if why := podfailure.Why(p, f.Now); why != nil {
				c.Evidence = append(c.Evidence, Evidence{Source: FromContainer, Object: podObject(p), Text: why.String()})
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

// deletedWithin is how long the garbage collector usually takes to delete what an object owns.
const deletedWithin = 30 * time.Second

// ownFinalizers are the finalizers of Kubernetes, Crossplane and the provider.
var ownFinalizers = map[string]bool{
	metav1.FinalizerDeleteDependents: true, metav1.FinalizerOrphanDependents: true,
	"composite.apiextensions.crossplane.io": true, "finalizer.managedresource.crossplane.io": true,
}

// deletion returns why an object that is being deleted still exists: the object that it waits for,
// or its own finalizers.
func (f *facts) deletion(u *unstructured.Unstructured) *Cause {
	at := u.GetDeletionTimestamp().Time
	c := &Cause{
		Object: objectOf(u), Since: &at, rank: passing, Message: "is being deleted",
		Evidence: []Evidence{{Source: FromCondition, Object: objectOf(u), At: &at, Text: "deletionTimestamp; finalizers: " + strings.Join(u.GetFinalizers(), ", ")}},
	}
	if u.GetKind() == "Pod" {
		return f.ending(u, c)
	}
	var below []*Cause
	var left []string
	foreground := slices.Contains(u.GetFinalizers(), metav1.FinalizerDeleteDependents)
	for _, child := range f.children(u) {
		switch {
		case child.GetDeletionTimestamp() != nil:
			below = append(below, f.deletion(child))
		case foreground:
			left = append(left, objectOf(child).String())
		}
	}
	if len(below) > 0 {
		return slices.MinFunc(below, func(a, b *Cause) int { return cmp.Compare(a.rank, b.rank) })
	}
	foreign := slices.DeleteFunc(slices.Clone(u.GetFinalizers()), func(name string) bool { return ownFinalizers[name] })
	switch {
	case len(foreign) > 0:
		c.rank, c.Message = lasting, "is being deleted: its finalizers "+strings.Join(foreign, ", ")+" are not Storeplane's, and have not been removed"
		c.Do = []string{"Check the controller that sets the finalizer. Where it is gone for good, remove the finalizer by kubectl edit"}
	case len(left) > 0:
		if c.Message = "is being deleted: " + some(left) + " are not yet"; f.Now.Sub(at) > deletedWithin {
			c.Message += ": a Usage or a policy may refuse it"
		}
	case isManaged(u):
		c.rank, c.Message = lasting, "is being deleted, and the provider has not removed its finalizer"
		if synced := conditionOf(u, "Synced"); synced.status == "False" {
			c.Message = "is being deleted: " + synced.message
			c.Evidence = append(c.Evidence, synced.evidence(u))
		}
		f.packages(c, "Provider")
	}
	return c
}

// ending returns why a pod that is being deleted still exists. Its deletionTimestamp is the end of
// its grace period.
func (f *facts) ending(u *unstructured.Unstructured, c *Cause) *Cause {
	p := f.pods[u.GetName()]
	if p != nil {
		if n := f.node(p.Spec.NodeName); n != nil {
			if of := f.nodeOf(p, n); of != nil {
				return of
			}
		}
	}
	c.rank, c.Message, c.Since = progressing, "is ending", nil
	if f.Now.After(u.GetDeletionTimestamp().Time) {
		c.rank, c.Message, c.Since = lasting, "has not ended within its grace period", c.Evidence[0].At
	}
	return c
}

// most is how many names of a list are printed.
const most = 3

// some returns the first names of a list, and how many others there are.
func some(names []string) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
}
