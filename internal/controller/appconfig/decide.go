package appconfig

import (
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// Decision is what to record, what to report, and then what to do.
type Decision struct {
	Observation configv1.AppConfigObservation
	Conditions  []xpv2.Condition
	Events      []event.Event

	// Make is true if the wanted bundle is to be created, before the Observation is recorded.
	Make bool

	// Publish is the bundle that the objects of the stable name are to hold, or "" to leave them as
	// they are. It comes before any change of a target.
	Publish string

	// Patch lists the targets to change so that they run the Observation's bundle.
	Patch []Key

	// Evict lists pods to delete.
	Evict []Pod

	// Again is after what time to reconcile again even without an event, or zero.
	Again time.Duration

	// Ended is how a rollout ended by this decision, or "".
	Ended Result

	// Took is how long a rollout that Succeeded took.
	Took time.Duration
}

// Result is how a rollout ended.
type Result string

// The results of rollouts.
const (
	Succeeded  Result = telemetry.RolloutSucceeded
	RolledBack Result = telemetry.RolloutRolledBack
	Failed     Result = telemetry.RolloutFailed
	Superseded Result = telemetry.RolloutSuperseded
)

// Acts reports whether the stable name, targets or pods are to be changed.
func (d *Decision) Acts() bool { return d.Publish != "" || len(d.Patch)+len(d.Evict) > 0 }

// view is the state of a decision, which is made step by step.
type view struct {
	*State

	d   Decision
	obs *configv1.AppConfigObservation

	// started is true if this decision starts a rollout: changes that were refused before were of
	// another bundle.
	started bool
}

// Decide decides what to do about an AppConfig that is not being deleted. It is a function of the
// State alone.
func Decide(s *State) Decision {
	v := &view{State: s}
	v.d.Observation = *s.AppConfig.Status.AtProvider.DeepCopy()
	v.obs = &v.d.Observation
	v.obs.ConfigMapName = appconfig.StableName(s.params().Application)

	v.adopt()
	v.choose()
	v.judge()
	v.plan()
	v.unblock()
	v.publish()
	v.d.Conditions = v.conditions()
	v.d.Events = v.events()
	return v.d
}

// adopt records the bundle that most healthy targets run, if no bundle is recorded: the AppConfig
// is new, or its status was lost. What healthy targets run counts as good.
func (v *view) adopt() {
	if v.obs.Bundle != "" {
		return
	}
	count, best := map[string]int{}, ""
	for i := range v.Targets {
		t := &v.Targets[i]
		if t.Missing || t.Closed != "" || t.Bundle == "" || !v.Whole[t.Bundle] || !t.gated() || !t.Health.IsHealthy() {
			continue
		}
		count[t.Bundle]++
		if best == "" || count[t.Bundle] > count[best] {
			best = t.Bundle
		}
	}
	v.obs.Bundle, v.obs.LastGood = best, best
}

// choose decides which bundle the targets are to run.
func (v *view) choose() {
	switch {
	case v.Problem != nil:
		v.obs.Debouncing = nil
		if v.Problem.Reason == configv1.ReasonBundleTaken {
			// The object in the way may lack the label, so that its deletion causes no event.
			v.again(glance)
		}
	case v.Wanted == v.obs.Bundle:
		v.obs.Debouncing = nil
		if f := v.obs.Failed; f != nil && f.Bundle != v.Wanted {
			// The content was changed back.
			v.obs.Failed = nil
		}
		v.d.Make = !v.Whole[v.Wanted] && !v.Frozen
	case v.obs.Failed != nil && v.obs.Failed.Bundle == v.Wanted:
		v.obs.Debouncing = nil
	case v.Frozen, v.paused():
		v.obs.Debouncing = nil
	case v.mayStart():
		v.start()
	}
}

// A change is rolled out at once, unless another rollout has started within spacing. Then it waits
// until there was no edit for the time quiet, but not for more than longest.
const (
	spacing = 30 * time.Second
	quiet   = 5 * time.Second
	longest = 60 * time.Second
)

// mayStart reports whether a rollout may start now. If not, it records that the change is
// debounced.
func (v *view) mayStart() bool {
	h := v.obs.Debouncing
	if h == nil {
		last := v.obs.LastStarted
		if last == nil || v.Now.Sub(last.Time) >= spacing {
			return true
		}
		h = &configv1.Debouncing{FirstChangeTime: metav1.NewTime(v.Now)}
	}
	if h.Bundle != v.Wanted {
		h = &configv1.Debouncing{Bundle: v.Wanted, LastChangeTime: metav1.NewTime(v.Now), FirstChangeTime: h.FirstChangeTime}
	}
	v.obs.Debouncing = h
	left := min(quiet-v.Now.Sub(h.LastChangeTime.Time), longest-v.Now.Sub(h.FirstChangeTime.Time))
	if left <= 0 {
		return true
	}
	v.again(left)
	return false
}

// start starts a rollout of the wanted bundle. It supersedes one that is in progress.
func (v *view) start() {
	if v.obs.Pending != "" {
		v.d.Ended = Superseded
	}
	now := metav1.NewTime(v.Now)
	v.obs.Bundle, v.obs.Pending = v.Wanted, v.Wanted
	v.obs.PendingSince, v.obs.LastStarted = &now, &now
	v.obs.Debouncing, v.obs.Failed = nil, nil
	v.d.Make = !v.Whole[v.Wanted]
	v.started = true
	v.State = new(*v.State)
	v.Targets = slices.Clone(v.Targets)
	for i := range v.Targets {
		v.Targets[i].Refused = nil
	}
}

// publish decides whether to write the bundle that is to run under the stable name.
func (v *view) publish() {
	if v.Frozen || v.Taken != "" || v.obs.Bundle == "" || v.Holds == v.obs.Bundle {
		return
	}
	if v.d.Make || v.Whole[v.obs.Bundle] {
		v.d.Publish = v.obs.Bundle
	}
}

// again requests a reconciliation within a time, of a second at least.
func (v *view) again(within time.Duration) {
	if v.d.Again == 0 || within < v.d.Again {
		v.d.Again = max(within, time.Second)
	}
}
