package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/text"
)

// deployment returns the effects on a Deployment, whose pods are replaced one by one, or all at
// once in the case of a cache.
func (f *forecast) deployment(p pair) []Effect {
	was, is := replicasOf(p.before), replicasOf(p.after)
	if p.part() == label.ComponentLogArchive {
		return logArchive(p, was)
	}
	switch p.Action {
	case Create:
		return nil
	case Delete:
		e := p.effect(Stops, "stops %s of %s", text.Count(was, "pod"), p.Object)
		e.Pods, e.Interrupts = was, p.part() == label.ComponentCache || p.part() == label.ComponentWeb
		return []Effect{e}
	case Update, Adopt:
	}
	var out []Effect
	if is != was {
		e := p.effect(Scales, "%s has %s instead of %d", p.Object, text.Count(is, "pod"), was)
		e.Pods = max(0, was-is)
		out = append(out, e)
	}
	if n := min(was, is); n > 0 && p.touches("spec.template") {
		out = append(out, f.rolled(p, n))
	}
	return out
}

// logArchive returns the effects on the pod that archives binary logs. The servers keep those that it has not
// archived.
func logArchive(p pair, was int) []Effect {
	switch {
	case p.Action == Delete:
		e := p.effect(Unprotects, "%s is deleted: binary logs are not archived any more", p.Object)
		e.Pods, e.Warning = was, true
		return []Effect{e}
	case p.Action == Update && p.touches("spec.template") && was > 0:
		e := p.effect(Restarts, "restarts %s: binary logs are archived once it has started again", p.Object)
		e.Pods = was
		return []Effect{e}
	}
	return nil
}

// rolled returns the effect of replacing n pods of a Deployment.
func (f *forecast) rolled(p pair, n int) Effect {
	strategy, _, _ := unstructured.NestedString(p.after.Object, "spec", "strategy", "type")
	if strategy == "Recreate" {
		e := p.effect(Restarts, "restarts %s: nothing answers until it has started", p.Object)
		if p.part() == label.ComponentCache {
			e.Message += ", and the cache is empty then"
		}
		e.Pods, e.Interrupts = n, true
		return e
	}
	how := "replaces the " + text.Count(n, "pod") + " of " + p.Object.String() + " one by one, each once its successor is ready"
	if n == 1 {
		how = "replaces the pod of " + p.Object.String() + " once its successor is ready"
	}
	e := p.effect(Rolls, "%s%s", how, f.afterMigration(p))
	e.Pods = n
	return e
}

// afterMigration returns the end of a message about pods that wait for a migration of the same
// claim, or "".
func (f *forecast) afterMigration(p pair) string {
	for _, other := range f.pairs {
		if other.Action == Create && other.Object.Kind == "Job" && other.Owner == p.Owner && other.part() == label.ComponentMigration {
			return ", after Job " + other.Object.Name + " has completed"
		}
	}
	return ""
}

// job returns the effects of a Job, which runs once.
func (f *forecast) job(p pair) []Effect {
	if p.Action != Create || p.owner == nil {
		return nil
	}
	if p.part() != label.ComponentMigration {
		return []Effect{p.effect(Runs, "%s runs once", p.Object)}
	}
	e := p.effect(Runs, "%s migrates the database of the application: pods of the old version go on beside it", p.Object)
	e.Irreversible = f.existed(p)
	return []Effect{e}
}

// existed reports whether the claim that composes an object composed objects before the edit: the
// first migration of a new claim can harm nothing.
func (f *forecast) existed(p pair) bool {
	for _, o := range f.had {
		if o.owner != nil && keyOf(o.owner) == keyOf(p.owner) {
			return true
		}
	}
	return false
}

// cronJob returns the effect of the deletion of a CronJob. All other changes take effect in its
// next run.
func (f *forecast) cronJob(p pair) []Effect {
	if p.Action != Delete {
		return nil
	}
	return []Effect{p.effect(Stops, "%s is not run any more; a run that has begun ends with it", p.Object)}
}

// appConfig returns the effects of an AppConfig on the workloads that read its configuration. Their
// annotations name the AppConfigs that may change them.
func (f *forecast) appConfig(p pair) []Effect {
	if p.Action != Update || !p.touches("spec.forProvider") {
		return nil
	}
	var out []Effect
	for _, o := range f.had {
		if o.live.GetKind() != "Deployment" || !appconfig.Allows(o.live.GetAnnotations(), p.Object.Name) || f.isRolled(o.live) {
			continue
		}
		n := replicasOf(o.live)
		e := Effect{Verb: Rolls, Object: objectOf(o.live), Pods: n}
		e.Message = fmt.Sprintf("replaces the %s of %s one by one for %s, which rolls back if they do not become healthy", text.Count(n, "pod"), e.Object, p.Object)
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Effect) int { return cmp.Compare(a.Object.Name, b.Object.Name) })
	return out
}

// isRolled reports whether the pods of a workload are replaced because of its own change.
func (f *forecast) isRolled(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.pairs, func(o pair) bool { return keyOf(o.either()) == keyOf(u) && o.touches("spec.template") })
}

// service returns the effects of a Service whose ports or selector change, or which is deleted
// while its pods are not.
func (f *forecast) service(p pair) []Effect {
	switch {
	case p.Action == Delete && !f.goesWithPods(p):
		e := p.effect(Reroutes, "%s is gone: what connects by its name fails", p.Object)
		e.Interrupts = true
		return []Effect{e}
	case p.Action == Update && p.podsRead():
		e := p.effect(Reroutes, "%s has another port at once: requests fail until clients use it and the pods are replaced", p.Object)
		e.Interrupts = true
		return []Effect{e}
	}
	return nil
}

// goesWithPods reports whether the pods behind a Service are deleted too.
func (f *forecast) goesWithPods(p pair) bool {
	part, ok, _ := unstructured.NestedString(p.before.Object, "spec", "selector", label.Component)
	if !ok {
		part = p.part()
	}
	return slices.ContainsFunc(f.pairs, func(o pair) bool {
		return o.Action == Delete && (o.Object.Kind == "Deployment" || o.Object.Kind == "StatefulSet") && o.Owner == p.Owner && o.part() == part
	})
}

// networkPolicy returns the effect of a NetworkPolicy that admits other clients than before.
func (f *forecast) networkPolicy(p pair) []Effect {
	narrows := func(c Field) bool {
		return c.Before != nil && (within(c.Path, "spec.ingress") && !strings.Contains(c.Path, ".ports") || within(c.Path, "spec.podSelector"))
	}
	if p.Action != Update || !slices.ContainsFunc(p.Fields, narrows) {
		return nil
	}
	e := p.effect(Reroutes, "%s admits others: who is not among them cannot connect any more, as far as the network plugin enforces it", p.Object)
	e.Interrupts = true
	return []Effect{e}
}

// autoscaler returns the effect of an autoscaler that is created or deleted, or whose bounds
// change.
func (f *forecast) autoscaler(p pair) []Effect {
	bounds := func(u *unstructured.Unstructured) (int, int) {
		lowest, _, _ := unstructured.NestedInt64(u.Object, "spec", "minReplicas")
		most, _, _ := unstructured.NestedInt64(u.Object, "spec", "maxReplicas")
		return int(max(lowest, 1)), int(most)
	}
	switch {
	case p.Action == Delete:
		return []Effect{p.effect(Scales, "%s is gone: the number of pods is the claim's", p.Object)}
	case p.Action == Update && !p.touches("spec.minReplicas") && !p.touches("spec.maxReplicas"):
		return nil
	}
	lowest, most := bounds(p.after)
	return []Effect{p.effect(Scales, "%s keeps between %d and %s", p.Object, lowest, text.Count(most, "pod"))}
}

// podsRead reports whether a change of a Service affects its connections: its ports or its
// selector, and not the name of a port.
func (p pair) podsRead() bool {
	for _, f := range p.Fields {
		if strings.HasSuffix(f.Path, ".port") || strings.HasSuffix(f.Path, ".targetPort") || strings.HasPrefix(f.Path, "spec.selector") {
			return true
		}
		// A port that is removed.
		if strings.HasPrefix(f.Path, "spec.ports[") && strings.HasSuffix(f.Path, "]") && f.Before != nil {
			return true
		}
	}
	return false
}

// route returns the effects of an Ingress or an HTTPRoute.
func (f *forecast) route(p pair) []Effect {
	switch p.Action {
	case Create:
		return []Effect{p.effect(Reroutes, "%s makes the application reachable from outside", p.Object)}
	case Delete:
		e := p.effect(Reroutes, "%s is gone: the application is not reachable by it any more", p.Object)
		e.Interrupts = true
		return []Effect{e}
	case Update, Adopt:
	}
	if !p.touches("spec") {
		return nil
	}
	e := p.effect(Reroutes, "%s routes by other rules at once", p.Object)
	e.Interrupts = p.touches("spec.rules") || p.touches("spec.hostnames") || p.touches("spec.tls") || p.touches("spec.ingressClassName") || p.touches("spec.parentRefs")
	return []Effect{e}
}
