package appconfig

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
)

// After what time to reconcile again.
const (
	// glance is for pods, which are not watched, and for other AppConfigs.
	glance = 2 * time.Second
	// each is added for every target whose pods are read.
	each = 200 * time.Millisecond
	// retry is for changes that were refused.
	retry = time.Minute
)

// plan decides which targets to change now, and records the states of all.
func (v *view) plan() {
	standings := make([]standing, len(v.Targets))
	busy := map[Key]bool{}
	for _, o := range v.Others {
		for _, k := range o.Progressing {
			busy[k] = true
		}
	}
	for i := range v.Targets {
		standings[i] = v.stand(&v.Targets[i])
		switch standings[i].state {
		case configv1.TargetProgressing, configv1.TargetFailed:
			busy[v.Targets[i].Key] = true
		default:
		}
	}
	waits := make([]string, len(v.Targets))
	for i := range v.Targets {
		t := &v.Targets[i]
		if !v.isBehind(t, standings[i]) {
			continue
		}
		waits[i] = v.turn(i, standings)
		// A target that is already unhealthy counts as busy and is changed whatever the budget is:
		// it serves less than it should in any case.
		if waits[i] == "" && t.gated() && !t.Health.IsHealthy() {
			busy[t.Key] = true
		}
	}
	states := make([]configv1.TargetStatus, 0, len(v.Targets))
	looked := 0
	for i := range v.Targets {
		t, s := &v.Targets[i], standings[i]
		patch := false
		if v.isBehind(t, s) {
			s, patch = v.room(t, s, waits[i], busy)
		}
		if patch {
			v.d.Patch = append(v.d.Patch, t.Key)
		}
		if s.state == configv1.TargetProgressing && t.gated() {
			looked++
		}
		states = append(states, v.status(t, s, patch))
	}
	if looked > 0 {
		v.again(max(glance, time.Duration(looked)*each))
	}
	v.obs.Targets = states
}

// isBehind reports whether a target does not run what it is to run and may be changed.
func (v *view) isBehind(t *Target, s standing) bool {
	if v.byOwner() || v.Frozen || v.obs.Bundle == "" || t.Closed != "" || t.Refused != nil {
		if t.Refused != nil {
			v.again(retry)
		}
		return false
	}
	switch s.state {
	case configv1.TargetWaiting:
		return true
	case configv1.TargetForbidden, configv1.TargetConflict:
		// While another object has the stable name, a change would not help.
		return !t.Reader || v.Taken == ""
	case configv1.TargetUpdated, configv1.TargetProgressing, configv1.TargetPaused, configv1.TargetMissing, configv1.TargetFailed:
	}
	return false
}

// turn returns what a target waits for, or "" if it may be changed.
func (v *view) turn(i int, standings []standing) string {
	if wait := v.halted(); wait != "" {
		return wait
	}
	if wait := v.before(i, standings); wait != "" {
		return wait
	}
	wait := v.elsewhere(v.Targets[i].Key)
	if wait != "" {
		v.again(glance)
	}
	return wait
}

// room returns the standing of a target, and whether to change it: there must be room for it among
// the targets of the namespace that are being changed.
func (v *view) room(t *Target, s standing, wait string, busy map[Key]bool) (standing, bool) {
	if wait == "" && t.gated() && !busy[t.Key] {
		if len(busy) >= v.Budget {
			wait = "Waiting for other rollouts of the namespace"
			v.again(glance)
		} else {
			busy[t.Key] = true
		}
	}
	// A target whose change was refused keeps that state until a change succeeds.
	if s.state == configv1.TargetWaiting {
		if s.message = wait; wait == "" {
			s.state = configv1.TargetProgressing
		}
	}
	return s, wait == ""
}

// halted returns why no more targets are changed, or "".
func (v *view) halted() string {
	if v.obs.Pending == "" {
		return ""
	}
	switch {
	case v.obs.Failed != nil:
		return "The rollout has failed"
	case v.paused():
		return "The rollout is paused"
	}
	return ""
}

// before returns which target comes first, or "". A rollback has no order.
func (v *view) before(i int, standings []standing) string {
	if v.obs.Pending == "" {
		return ""
	}
	gated := v.Targets[i].gated()
	for n := range v.Targets {
		t, s := &v.Targets[n], standings[n]
		if !v.counts(t, s) || s.state == configv1.TargetUpdated {
			continue
		}
		if !gated || n < i && appconfig.Sequential(v.params()) {
			return "Waiting for " + t.String()
		}
	}
	return ""
}

// elsewhere returns which other AppConfig with an earlier rollout changes a target or waits to do
// so, or "".
func (v *view) elsewhere(k Key) string {
	if v.obs.Failed != nil && v.obs.Pending == "" {
		return ""
	}
	began := v.Now
	if v.obs.PendingSince != nil {
		began = v.obs.PendingSince.Time
	}
	for _, o := range v.Others {
		earlier := !o.Since.IsZero() && (o.Since.Before(began) || o.Since.Equal(began) && o.Name < v.AppConfig.Name)
		if earlier && (slices.Contains(o.Progressing, k) || slices.Contains(o.Waiting, k)) {
			return "Waiting for AppConfig " + o.Name
		}
	}
	return ""
}

// busyElsewhere reports whether another AppConfig is changing a target.
func (v *view) busyElsewhere(k Key) bool {
	return slices.ContainsFunc(v.Others, func(o Other) bool { return slices.Contains(o.Progressing, k) })
}

// status returns the status of a target, with the time of its last change.
func (v *view) status(t *Target, s standing, patched bool) configv1.TargetStatus {
	if s.state == configv1.TargetWaiting && v.byOwner() && v.obs.Bundle != "" {
		s.message = "Waiting for its owner to bring the bundle"
	}
	out := configv1.TargetStatus{Kind: t.Kind, Name: t.Name, Bundle: s.bundle, State: s.state, Reason: s.reason, Message: s.message}
	was := v.recorded(t.Key)
	fresh := was == nil || was.Since == nil || was.State != out.State || was.Bundle != out.Bundle
	if fresh || (patched || v.isBlocked(t)) && s.state == configv1.TargetProgressing {
		out.Since = new(metav1.NewTime(v.Now))
	} else {
		out.Since = was.Since.DeepCopy()
	}
	return out
}

// unblock decides to delete pods that block a StatefulSet: its controller does not replace a pod
// that never became ready, even if the template has changed since.
func (v *view) unblock() {
	if v.Frozen {
		return
	}
	for i := range v.Targets {
		if t := &v.Targets[i]; v.isBlocked(t) && t.Closed == "" {
			v.d.Evict = append(v.d.Evict, t.Pods.Blocking...)
		}
	}
}

// isBlocked reports whether pods are in the way of a target's template.
func (v *view) isBlocked(t *Target) bool {
	return t.Kind == configv1.StatefulSet && !t.Missing && len(t.Pods.Blocking) > 0 && v.runs(t) == v.obs.Bundle
}
