package appconfig

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/health"
)

// standing is the state of a target, before what is about to be done.
type standing struct {
	state   configv1.TargetState
	bundle  string
	reason  string
	message string
}

// counts reports whether a rollout waits for a target.
func (v *view) counts(t *Target, s standing) bool {
	if !t.gated() {
		return false
	}
	switch s.state {
	case configv1.TargetMissing, configv1.TargetPaused, configv1.TargetForbidden, configv1.TargetConflict:
		return false
	case configv1.TargetUpdated, configv1.TargetProgressing, configv1.TargetWaiting, configv1.TargetFailed:
	}
	return true
}

// stand returns the standing of a target, judged by the bundle that it is to run.
func (v *view) stand(t *Target) standing {
	s := standing{bundle: v.runs(t)}
	was := v.recorded(t.Key)
	switch {
	case t.Missing:
		s.state, s.bundle = configv1.TargetMissing, ""
	case t.Closed != "":
		s.state, s.bundle, s.reason = configv1.TargetForbidden, "", configv1.ReasonNotAllowed
		s.message = "It does not allow this AppConfig to change it: set its annotation " + configv1.AllowAnnotation + ": " + t.Closed
	case t.Paused:
		s.state, s.message = configv1.TargetPaused, "It is paused, and not touched until it is resumed"
	case t.Reader && v.Taken != "" && !v.byOwner():
		s.state, s.reason, s.message = configv1.TargetConflict, configv1.ReasonAlreadyExists, "It refers to "+v.Taken+", which is not this AppConfig's"
	case v.obs.Bundle == "":
		s.state = configv1.TargetWaiting
	case s.bundle != v.obs.Bundle || !t.Current && !v.byOwner():
		s.state = configv1.TargetWaiting
		if t.Refused != nil {
			s.state, s.reason, s.message = t.Refused.State, t.Refused.Reason, t.Refused.Message
		} else if wasRefused(was) && !v.started {
			// The change is retried, and the status stays the same until it succeeds.
			s.state, s.reason, s.message = was.State, was.Reason, was.Message
		}
	case !t.gated(), t.Health.IsHealthy() && !v.unproven(t):
		s.state = configv1.TargetUpdated
	case v.stays(t, was):
		s.state = configv1.TargetUpdated
	case v.obs.Failed != nil && v.obs.Failed.Bundle == v.obs.Bundle, v.isLate(t, s, was):
		s.state, s.message = configv1.TargetFailed, v.words(t)
	default:
		s.state, s.message = configv1.TargetProgressing, v.words(t)
	}
	return s
}

// wasRefused reports whether a change of a target was tried and refused, by the reason that is
// recorded. A state that was caused by the target itself or by the stable name ends with its cause:
// if it were kept, no rollout would wait for the target, and a bundle that the target has not
// proven would count as good.
func wasRefused(was *configv1.TargetStatus) bool {
	return was != nil && slices.Contains([]string{configv1.ReasonForbidden, configv1.ReasonFieldManagerConflict, configv1.ReasonInvalid}, was.Reason)
}

// runs returns the bundle that a target runs. A target that reads the stable name and was never
// changed runs what that name held when the target was first observed.
func (v *view) runs(t *Target) string {
	if !t.Reader || t.Annotated || v.byOwner() {
		return t.Bundle
	}
	if was := v.recorded(t.Key); was != nil && was.Bundle != "" {
		return was.Bundle
	}
	if v.Holds != "" {
		return v.Holds
	}
	return v.obs.Bundle
}

// unproven reports whether pods of a target are unproven, which only matters during a rollout.
func (v *view) unproven(t *Target) bool { return v.obs.Pending != "" && t.Pods.Unproven }

// stays reports whether a target remains Updated though it is not healthy: what happens to it after
// a rollout is not caused by its configuration, nor is it while another AppConfig changes it.
func (v *view) stays(t *Target, was *configv1.TargetStatus) bool {
	if was == nil || was.State != configv1.TargetUpdated || was.Bundle != v.obs.Bundle {
		return false
	}
	return v.obs.Pending == "" || v.busyElsewhere(t.Key)
}

// isLate reports whether a target that was changed after the end of the rollout did not become
// healthy within the deadline.
func (v *view) isLate(t *Target, s standing, was *configv1.TargetStatus) bool {
	if v.obs.Pending != "" || was == nil || was.Bundle != s.bundle || v.isBlocked(t) {
		return false
	}
	if was.State == configv1.TargetProgressing && was.Since != nil {
		return v.Now.Sub(was.Since.Time) >= appconfig.Deadline(v.params())
	}
	return was.State == configv1.TargetFailed
}

// words returns the message about a target that is not healthy.
func (v *view) words(t *Target) string {
	if t.Pods.NotReady != "" {
		return t.Pods.NotReady
	}
	return t.Health.Message
}

func (v *view) byOwner() bool { return appconfig.ByOwner(v.params()) }

// judge decides whether the rollout has ended: it succeeds once all targets that count are healthy,
// and fails when one of them cannot be expected to become healthy.
func (v *view) judge() {
	if v.obs.Pending == "" {
		return
	}
	counted, good, bad, others := 0, 0, 0, 0
	for i := range v.Targets {
		t := &v.Targets[i]
		s := v.stand(t)
		switch {
		case !v.counts(t, s):
			if t.gated() {
				others++
			}
			continue
		case s.state == configv1.TargetUpdated:
			good++
		case s.state != configv1.TargetWaiting:
			bad++
		}
		counted++
	}
	// Without any targets there is nothing to wait for. If there are some and none of them counts,
	// nothing is proven.
	if good == counted && (counted > 0 || others == 0) {
		v.promote()
		return
	}
	if v.obs.Failed != nil {
		if good > 0 && bad == 0 {
			// The targets that were changed are healthy after all, so the rollout continues.
			v.obs.Failed = nil
		}
		return
	}
	for i := range v.Targets {
		if f := v.failure(&v.Targets[i]); f != nil {
			v.fail(f)
			return
		}
	}
}

// promote makes the pending bundle the last good one.
func (v *view) promote() {
	now := metav1.NewTime(v.Now)
	if v.obs.PendingSince != nil {
		v.d.Took = v.Now.Sub(v.obs.PendingSince.Time)
	}
	v.d.Ended = Succeeded
	v.obs.LastGood, v.obs.LastUpdated = v.obs.Pending, &now
	v.obs.Pending, v.obs.PendingSince, v.obs.Failed = "", nil, nil
}

// settling is for how long a failure may still be that of the generation before.
const settling = 10 * time.Second

// failure returns why a target makes the rollout fail, or nil.
func (v *view) failure(t *Target) *configv1.FailedRollout {
	s := v.stand(t)
	if !v.counts(t, s) || s.state != configv1.TargetProgressing {
		return nil
	}
	f := &configv1.FailedRollout{Bundle: v.obs.Pending, Time: metav1.NewTime(v.Now), Reason: configv1.ReasonPodFailing}
	if p := t.Pods.Fault; p != nil {
		f.Message, f.Log = t.String()+": pod "+p.Pod+": "+p.Message, p.Log
		if !p.Late {
			return f
		}
	}
	if v.isBlocked(t) {
		// Its deadline begins once pods of its template can be created.
		return nil
	}
	since := v.progressed(t, s)
	deadline := appconfig.Deadline(v.params())
	late := v.Now.Sub(since) >= deadline
	if !late && (t.Health.State != health.Failed || v.Now.Sub(since) < settling) {
		v.again(deadline - v.Now.Sub(since))
		return nil
	}
	f.Reason, f.Message = configv1.ReasonProgressDeadlineExceeded, t.String()+" exceeded its progress deadline"
	if w := v.words(t); w != "" {
		f.Message += ": " + w
	}
	return f
}

// progressed returns when a target last made progress: when it was changed, or when one of its pods
// became ready.
func (v *view) progressed(t *Target, s standing) time.Time {
	since := v.Now
	if was := v.recorded(t.Key); was != nil && was.State == s.state && was.Bundle == s.bundle && was.Since != nil {
		since = was.Since.Time
	}
	if t.Pods.LastReady.After(since) {
		return t.Pods.LastReady
	}
	return since
}

// fail ends the rollout as failed, and rolls back to the last good bundle if possible.
func (v *view) fail(f *configv1.FailedRollout) {
	v.obs.Failed = f
	v.d.Ended = Failed
	if good := v.obs.LastGood; appconfig.AutoRollback(v.params()) && !v.Frozen && good != "" && good != v.obs.Bundle && v.Whole[good] {
		v.obs.Bundle, v.obs.Pending, v.obs.PendingSince = good, "", nil
		v.d.Ended = RolledBack
	}
}
