package appconfig

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/health"
)

// outcome is what becomes of pods with a content, on any workload.
type outcome int

const (
	good outcome = iota
	_            // the pods never become ready
	// crashes means that the pods crash.
	crashes
)

// pod is a pod of the simulation.
type pod struct {
	bundle string
	born   time.Time
	ready  bool
	since  time.Time
}

// load is a workload, with a simulation of its Kubernetes controller.
type load struct {
	key      Key
	bundle   string
	since    time.Time // when the template last changed
	pods     []pod
	replicas int
	paused   bool
	gone     bool
	forbids  bool

	// ours means that it was healthy until the AppConfig changed it.
	ours bool
}

// isDisturbed reports whether a workload has fewer ready pods than it should, or pods that differ
// from its template.
func (l *load) isDisturbed() bool {
	return !l.gone && (len(l.pods) != l.replicas || slices.ContainsFunc(l.pods, func(p pod) bool { return !p.ready || p.bundle != l.bundle }))
}

// simulation is a namespace with one AppConfig.
type simulation struct {
	now      time.Time
	app      *configv1.AppConfig // with the stored status
	content  int
	outcomes []outcome
	whole    map[string]bool
	holds    string
	loads    []*load
	budget   int

	// epoch counts the changes of the requested content, and tried how often each bundle was
	// started in each epoch.
	epoch int
	tried map[string]int
}

func bundleOf(content int) string { return fmt.Sprintf("shop-config-%010x", content) }

func (w *simulation) outcome(bundle string) outcome {
	for i := range w.outcomes {
		if bundleOf(i) == bundle {
			return w.outcomes[i]
		}
	}
	return good
}

// newSimulation draws a namespace with workloads that have no bundle yet.
func newSimulation(t *rapid.T) *simulation {
	w := &simulation{now: time.Unix(1e9, 0), whole: map[string]bool{}, tried: map[string]int{}, budget: rapid.IntRange(1, 4).Draw(t, "budget")}
	w.app = &configv1.AppConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", Generation: 1}}
	p := &w.app.Spec.ForProvider
	p.Application = "shop"
	p.Rollout = &configv1.Rollout{ProgressDeadline: &metav1.Duration{Duration: 30 * time.Second}}
	if rapid.Bool().Draw(t, "sequential") {
		p.Rollout.Order = configv1.Sequential
	}
	kinds := []configv1.TargetKind{configv1.Deployment, configv1.StatefulSet, configv1.CronJob}
	for i := range rapid.IntRange(1, 4).Draw(t, "workloads") {
		l := &load{key: Key{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Name: fmt.Sprintf("w%d", i)}, since: w.now}
		if l.key.Kind != configv1.CronJob {
			l.replicas = rapid.IntRange(0, 3).Draw(t, "replicas")
		}
		for range l.replicas {
			l.pods = append(l.pods, pod{born: w.now, ready: true, since: w.now})
		}
		w.loads = append(w.loads, l)
		p.Targets = append(p.Targets, configv1.Target{Kind: l.key.Kind, Name: l.key.Name})
	}
	// The first content is good, like that of a running application.
	w.outcomes = append(w.outcomes, good)
	for range rapid.IntRange(1, 4).Draw(t, "contents") {
		w.outcomes = append(w.outcomes, outcome(rapid.IntRange(0, 2).Draw(t, "outcome")))
	}
	return w
}

// tick advances the clock and simulates what Kubernetes does meanwhile.
func (w *simulation) tick(by time.Duration) {
	w.now = w.now.Add(by)
	for _, l := range w.loads {
		if l.gone {
			continue
		}
		for i := range l.pods {
			if p := &l.pods[i]; !p.ready && w.outcome(p.bundle) == good && w.now.Sub(p.born) >= 2*time.Second {
				p.ready, p.since = true, w.now
			}
		}
		switch l.key.Kind {
		case configv1.Deployment:
			l.roll(w.now)
		case configv1.StatefulSet:
			l.replace(w.now)
		default:
		}
	}
}

// roll simulates the rolling update of a Deployment, with one pod more than it needs, and none
// less.
func (l *load) roll(now time.Time) {
	if l.paused {
		return
	}
	// Old pods that are not ready serve no requests.
	l.pods = slices.DeleteFunc(l.pods, func(p pod) bool { return !p.ready && p.bundle != l.bundle })
	ready, fresh := 0, 0
	for _, p := range l.pods {
		if p.ready {
			ready++
		}
		if p.bundle == l.bundle {
			fresh++
		}
	}
	if ready > l.replicas {
		if i := slices.IndexFunc(l.pods, func(p pod) bool { return p.ready && p.bundle != l.bundle }); i >= 0 {
			l.pods = slices.Delete(l.pods, i, i+1)
		}
	}
	if fresh < l.replicas && len(l.pods) <= l.replicas {
		l.pods = append(l.pods, pod{bundle: l.bundle, born: now})
	}
}

// replace simulates a StatefulSet: it replaces pods, the last one first, while all are ready.
func (l *load) replace(now time.Time) {
	for len(l.pods) < l.replicas {
		l.pods = append(l.pods, pod{bundle: l.bundle, born: now})
	}
	for _, p := range l.pods {
		if !p.ready {
			return
		}
	}
	for i := range slices.Backward(l.pods) {
		if l.pods[i].bundle != l.bundle {
			l.pods[i] = pod{bundle: l.bundle, born: now}
			return
		}
	}
}

// state returns the state as the reconciler gathers it.
func (w *simulation) state() *State {
	s := &State{AppConfig: w.app.DeepCopy(), Now: w.now, Wanted: bundleOf(w.content), Whole: w.whole, Holds: w.holds, Budget: w.budget}
	for _, l := range w.loads {
		t := Target{Key: l.key, Missing: l.gone, Paused: l.paused, Bundle: l.bundle, Annotated: l.bundle != "", Current: true}
		t.Health = health.Status{State: health.Healthy}
		if l.gone {
			t.Bundle = ""
			s.Targets = append(s.Targets, t)
			continue
		}
		if l.isDisturbed() {
			t.Health = health.Status{State: health.Progressing, Message: "Not all pods are ready"}
		}
		if l.forbids {
			if was := s.recorded(l.key); was != nil && was.State == configv1.TargetForbidden {
				t.Refused = &Refusal{State: configv1.TargetForbidden, Reason: configv1.ReasonForbidden, Message: "forbidden"}
			}
		}
		w.lookAt(l, &t)
		s.Targets = append(s.Targets, t)
	}
	return s
}

func (w *simulation) lookAt(l *load, t *Target) {
	for i, p := range l.pods {
		switch {
		case p.bundle == l.bundle && p.ready:
			if p.since.After(t.Pods.LastReady) {
				t.Pods.LastReady = p.since
			}
		case p.bundle == l.bundle && w.outcome(p.bundle) == crashes && w.now.Sub(p.born) >= 4*time.Second:
			t.Pods.Fault = &Fault{Pod: podName(l, i), Message: "container a keeps failing"}
		case p.bundle != l.bundle && !p.ready && l.key.Kind == configv1.StatefulSet && w.now.Sub(l.since) >= blockade && w.now.Sub(p.born) >= blockade:
			t.Pods.Blocking = append(t.Pods.Blocking, Pod{Name: podName(l, i)})
		}
	}
}

// reconcile reconciles once, and stops after some steps to simulate a crash.
func (w *simulation) reconcile(t *rapid.T, steps int) {
	s := w.state()
	d := Decide(s)
	step := func() bool { steps--; return steps >= 0 }
	if d.Make {
		if !step() {
			return
		}
		w.whole[s.Wanted] = true
	}
	if !step() {
		return
	}
	w.write(t, d)
	if d.Publish != "" {
		if !step() {
			return
		}
		w.holds = d.Publish
	}
	for _, k := range d.Patch {
		if !step() {
			return
		}
		w.patch(t, k, d.Observation.Bundle)
	}
	for _, k := range d.Evict {
		if !step() {
			return
		}
		w.evict(t, k.Name)
	}
}

// evict replaces a pod, by the name podName.
func (w *simulation) evict(t *rapid.T, name string) {
	for _, l := range w.loads {
		for i := range l.pods {
			if name != podName(l, i) || l.pods[i].bundle == l.bundle {
				continue
			}
			if l.pods[i].ready {
				t.Fatalf("A pod that serves was deleted: %v of %s", l.pods[i], l.key)
			}
			l.pods[i] = pod{bundle: l.bundle, born: w.now}
		}
	}
}

func podName(l *load, i int) string { return fmt.Sprintf("%s-%d", l.key.Name, i) }

// write stores the status, and checks it.
func (w *simulation) write(t *rapid.T, d Decision) {
	was, is := &w.app.Status.AtProvider, d.Observation
	if is.Pending != "" && (was.Pending != is.Pending || !was.PendingSince.Equal(is.PendingSince)) {
		key := fmt.Sprintf("%d/%s", w.epoch, is.Pending)
		if w.tried[key]++; w.tried[key] > 1 {
			t.Fatalf("Bundle %s (%v) was tried twice though nothing was changed", is.Pending, w.outcome(is.Pending))
		}
	}
	if is.LastGood != "" && w.outcome(is.LastGood) != good && slices.ContainsFunc(w.loads, func(l *load) bool {
		return l.replicas > 0 && !l.gone && !l.paused && !l.forbids && l.bundle == is.LastGood
	}) && was.LastGood != is.LastGood {
		t.Fatalf("Bundle %s is called good, and is not", is.LastGood)
	}
	w.app.Status.AtProvider = is
	w.app.SetConditions(d.Conditions...)
}

// patch changes a workload as far as the API server permits, and checks the budget.
func (w *simulation) patch(t *rapid.T, k Key, bundle string) {
	for _, l := range w.loads {
		if l.key != k {
			continue
		}
		switch {
		case l.gone:
			t.Fatalf("%s is not there, and was patched", k)
		case l.paused:
			t.Fatalf("%s is paused, and was patched", k)
		case l.forbids:
			l.ours = false // a workload that cannot be changed takes no place of the budget
			for i := range w.app.Status.AtProvider.Targets {
				if s := &w.app.Status.AtProvider.Targets[i]; s.Kind == k.Kind && s.Name == k.Name {
					s.State, s.Reason, s.Message = configv1.TargetForbidden, configv1.ReasonForbidden, "forbidden"
				}
			}
			continue
		}
		l.ours = l.ours && l.isDisturbed() || !l.isDisturbed()
		if l.bundle != bundle {
			l.bundle, l.since = bundle, w.now
		}
	}
	disturbed := 0
	for _, l := range w.loads {
		if l.key.Kind != configv1.CronJob && l.isDisturbed() && l.ours {
			disturbed++
		}
	}
	// With order Sequential, a superseded workload stays disturbed while it waits for its turn.
	if disturbed > w.budget && w.app.Spec.ForProvider.Rollout.Order != configv1.Sequential {
		t.Fatalf("%d workloads are disturbed at a time, and the budget is %d", disturbed, w.budget)
	}
}

// edit changes the requested content.
func (w *simulation) edit(to int) {
	if w.content != to {
		w.content = to
		w.epoch++
	}
}

// never is a number of steps that reconcile does not reach.
const never = 1 << 20

// settle runs the simulation until nothing changes any more.
func (w *simulation) settle(t *rapid.T) {
	for range 400 {
		w.tick(2 * time.Second)
		w.reconcile(t, never)
	}
}

// TestPropertyConverges: whatever happens, in the end each target runs the newest good bundle.
func TestPropertyConverges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSimulation(t)
		w.settle(t)
		some := func() *load { return w.loads[rapid.IntRange(0, len(w.loads)-1).Draw(t, "workload")] }
		t.Repeat(map[string]func(*rapid.T){
			"edit": func(t *rapid.T) { w.edit(rapid.IntRange(0, len(w.outcomes)-1).Draw(t, "content")) },
			"tick": func(*rapid.T) { w.tick(time.Second) },
			"wait": func(t *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(t, "seconds") {
					w.tick(time.Second)
				}
			},
			"reconcile": func(t *rapid.T) { w.reconcile(t, never) },
			"crash":     func(t *rapid.T) { w.reconcile(t, rapid.IntRange(0, 6).Draw(t, "steps")) },
			"pause":     func(*rapid.T) { w.app.Spec.ForProvider.Rollout.Pause = !w.app.Spec.ForProvider.Rollout.Pause },
			"freeze": func(*rapid.T) {
				if l := some(); l.key.Kind == configv1.Deployment {
					l.paused, l.ours = !l.paused, false
				}
			},
			"delete": func(*rapid.T) { l := some(); l.gone, l.ours, l.pods, l.bundle = true, false, nil, "" },
			"again": func(*rapid.T) {
				if l := some(); l.gone {
					l.gone, l.paused, l.since = false, false, w.now
					for range l.replicas {
						l.pods = append(l.pods, pod{born: w.now})
					}
				}
			},
			"forbid": func(*rapid.T) { l := some(); l.forbids = !l.forbids },
			"":       func(*rapid.T) {},
		})
		w.app.Spec.ForProvider.Rollout.Pause = false
		for _, l := range w.loads {
			l.paused, l.forbids = false, false
		}
		w.settle(t)
		w.isSettled(t)
	})
}

// isSettled fails the test if the namespace is not in the final state.
func (w *simulation) isSettled(t *rapid.T) {
	o := &w.app.Status.AtProvider
	wanted := bundleOf(w.content)
	expect := wanted
	proves := slices.ContainsFunc(w.loads, func(l *load) bool { return !l.gone && l.replicas > 0 })
	switch said := o.Failed != nil && o.Failed.Bundle == wanted; {
	case w.outcome(wanted) == good && said:
		t.Fatalf("%s is good, and the contrary is said: %+v", wanted, o)
	case w.outcome(wanted) != good && proves && o.LastGood != wanted && !said:
		t.Fatalf("%s is bad, and that is not said: %+v", wanted, o)
	case said:
		expect = o.LastGood
	}
	if o.Bundle != expect {
		t.Fatalf("want %s to run, got %+v", expect, o)
	}
	if w.outcome(expect) != good {
		// The bundle was accepted while no workload had pods to prove it. It is rolled out no
		// further once one has.
		return
	}
	for _, l := range w.loads {
		if l.gone {
			continue
		}
		if l.bundle != expect || l.isDisturbed() {
			t.Errorf("want %s on %s, and healthy, got %+v\n%+v", expect, l.key, *l, *o)
		}
	}
}
