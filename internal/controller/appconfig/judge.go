package appconfig

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/health"
)

// standing of a target: its state, beside what is about to be done.
type standing struct {
	state   configv1.TargetState
	bundle  string
	reason  string
	message string
}

// counts tells whether a rollout waits for a target.
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

// stand of a target as it is, judged by the bundle that it shall run.
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

// wasRefused tells whether a change of a target was tried and refused, by the reason that is
// recorded. A state that came from how the target or the stable name was ends with its cause:
// repeated, it would keep the target out of the gate, and a bundle that it has not proven would
// count as good.
func wasRefused(was *configv1.TargetStatus) bool {
	return was != nil && slices.Contains([]string{configv1.ReasonForbidden, configv1.ReasonFieldManagerConflict, configv1.ReasonInvalid}, was.Reason)
}

// runs is the bundle that a target runs. One that reads the stable name and was
// never changed runs what that held when it was first seen.
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

// unproven pods matter while a bundle is being proven.
func (v *view) unproven(t *Target) bool { return v.obs.Pending != "" && t.Pods.Unproven }

// stays Updated: what becomes of a target later is not its configuration's, nor is
// it while another AppConfig changes it.
func (v *view) stays(t *Target, was *configv1.TargetStatus) bool {
	if was == nil || was.State != configv1.TargetUpdated || was.Bundle != v.obs.Bundle {
		return false
	}
	return v.obs.Pending == "" || v.busyElsewhere(t.Key)
}

// isLate tells whether a target that was changed after the rollout had ended did
// not become healthy in time.
func (v *view) isLate(t *Target, s standing, was *configv1.TargetStatus) bool {
	if v.obs.Pending != "" || was == nil || was.Bundle != s.bundle || v.isBlocked(t) {
		return false
	}
	if was.State == configv1.TargetProgressing && was.Since != nil {
		return v.Now.Sub(was.Since.Time) >= appconfig.Deadline(v.params())
	}
	return was.State == configv1.TargetFailed
}

// words of a target that is not healthy.
func (v *view) words(t *Target) string {
	if t.Pods.Trouble != "" {
		return t.Pods.Trouble
	}
	return t.Health.Message
}

func (v *view) byOwner() bool { return appconfig.ByOwner(v.params()) }

// judge the rollout: it ends well once all targets that count are healthy, and has
// failed when one of them cannot be expected to get there.
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
	// Without any target there is nobody to wait for. Where none can be reached,
	// nothing is proven.
	if good == counted && (counted > 0 || others == 0) {
		v.promote()
		return
	}
	if v.obs.Failed != nil {
		if good > 0 && bad == 0 {
			// Those that were changed are healthy after all: it goes on.
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

// promote the bundle that was pending.
func (v *view) promote() {
	now := metav1.NewTime(v.Now)
	if v.obs.PendingSince != nil {
		v.d.Took = v.Now.Sub(v.obs.PendingSince.Time)
	}
	v.d.Ended = Succeeded
	v.obs.LastGood, v.obs.LastUpdated = v.obs.Pending, &now
	v.obs.Pending, v.obs.PendingSince, v.obs.Failed = "", nil, nil
}

// settling is for how long a failure may be that of the generation before.
const settling = 10 * time.Second

// failure of a target, or nil.
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
		// Its time begins once its template's pods can be made.
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

// progressed is when a target last made progress: when it was changed, or a pod
// of it became ready.
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

// fail the rollout, and put the last good bundle back.
func (v *view) fail(f *configv1.FailedRollout) {
	v.obs.Failed = f
	v.d.Ended = Failed
	if good := v.obs.LastGood; appconfig.AutoRollback(v.params()) && !v.Frozen && good != "" && good != v.obs.Bundle && v.Whole[good] {
		v.obs.Bundle, v.obs.Pending, v.obs.PendingSince = good, "", nil
		v.d.Ended = RolledBack
	}
}
