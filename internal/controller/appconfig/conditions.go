package appconfig

import (
	"slices"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
)

// Conditions beside Ready and Synced.
const (
	// TypeRendered reports whether the configuration can be rendered.
	TypeRendered xpv2.ConditionType = "Rendered"
	// TypeRolledOut reports whether the wanted configuration runs and has proven good.
	TypeRolledOut xpv2.ConditionType = "RolledOut"
	// TypePublished reports whether the stable name holds the configuration that is to run.
	TypePublished xpv2.ConditionType = "Published"
)

// refusal is why a condition is False.
type refusal struct {
	reason  xpv2.ConditionReason
	message string
}

func (v *view) conditions() []xpv2.Condition {
	out := []xpv2.Condition{
		v.condition(xpv2.TypeReady, xpv2.ReasonAvailable, v.readyMessage(), v.first(readyChecks)),
		v.condition(TypeRolledOut, configv1.ReasonRolledOut, "", v.first(rolloutChecks)),
		v.condition(TypeRendered, configv1.ReasonRendered, "", v.unrendered()),
		v.condition(TypePublished, configv1.ReasonPublished, "", v.unpublished()),
	}
	return out
}

// condition returns a condition that is True unless there is a refusal.
func (v *view) condition(t xpv2.ConditionType, good xpv2.ConditionReason, message string, r *refusal) xpv2.Condition {
	c := xpv2.Condition{Type: t, Status: corev1.ConditionTrue, Reason: good, Message: message, LastTransitionTime: metav1.NewTime(v.Now)}
	if r != nil {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, r.reason, r.message
	}
	return c
}

// rolloutChecks and readyChecks are in order: the first one that refuses sets reason and message.
var (
	rolloutChecks = []func(*view) *refusal{(*view).failed, (*view).invalid, (*view).held, (*view).pending}
	readyChecks   = []func(*view) *refusal{(*view).invalid, (*view).failed, (*view).held, (*view).pending, (*view).unreached, (*view).behind}
)

func (v *view) first(checks []func(*view) *refusal) *refusal {
	for _, check := range checks {
		if r := check(v); r != nil {
			return r
		}
	}
	return nil
}

// invalid refuses if the wanted configuration cannot be rendered. The one before it continues to
// run.
func (v *view) invalid() *refusal {
	if v.Problem == nil {
		return nil
	}
	return &refusal{reason: configv1.ReasonInvalidConfig, message: v.Problem.Message}
}

// failed refuses if the wanted configuration was tried and has failed.
func (v *view) failed() *refusal {
	f := v.obs.Failed
	switch {
	case f == nil:
		return nil
	case f.Bundle == v.obs.Bundle:
		return &refusal{reason: configv1.ReasonRolloutFailed, message: "Bundle " + f.Bundle + " failed: " + f.Message}
	}
	return &refusal{reason: configv1.ReasonRolledBack, message: "Bundle " + f.Bundle + " failed, and " + v.obs.Bundle + " was put back: " + f.Message}
}

// held refuses if the wanted configuration is held back.
func (v *view) held() *refusal {
	switch {
	case v.Problem != nil || v.Wanted == v.obs.Bundle && v.obs.Pending == "":
		return nil
	case v.Frozen && v.Wanted != v.obs.Bundle:
		return &refusal{reason: configv1.ReasonPaused, message: "The management policies hold bundle " + v.Wanted + " back"}
	case v.paused():
		return &refusal{reason: configv1.ReasonPaused, message: "rollout.pause holds bundle " + v.Wanted + " back"}
	case v.obs.Debouncing != nil:
		return &refusal{reason: configv1.ReasonDebouncing, message: "Bundle " + v.obs.Debouncing.Bundle + " waits until no more edits come"}
	}
	return nil
}

// pending refuses if the wanted configuration is being rolled out.
func (v *view) pending() *refusal {
	if v.obs.Pending == "" {
		return nil
	}
	waits := ""
	for i, t := range v.obs.Targets {
		if t.State == configv1.TargetUpdated || !v.Targets[i].gated() {
			continue
		}
		// A target that is being changed shows more than one that waits for it.
		if waits == "" || t.State == configv1.TargetProgressing {
			waits = ": " + said(t)
		}
		if t.State == configv1.TargetProgressing {
			break
		}
	}
	return &refusal{reason: configv1.ReasonRollingOut, message: "Bundle " + v.obs.Pending + " is rolled out" + waits}
}

// said returns the message about a target.
func said(t configv1.TargetStatus) string {
	out := string(t.Kind) + " " + t.Name
	if t.Message != "" {
		return out + ": " + t.Message
	}
	return out + " is " + string(t.State)
}

// most is how many targets or field managers a message names.
const most = 3

// unreached refuses if there are targets that cannot be changed or have failed.
func (v *view) unreached() *refusal {
	var names []string
	for _, t := range v.obs.Targets {
		switch t.State {
		case configv1.TargetForbidden, configv1.TargetConflict, configv1.TargetMissing, configv1.TargetFailed:
			names = append(names, said(t))
		case configv1.TargetUpdated, configv1.TargetProgressing, configv1.TargetWaiting, configv1.TargetPaused:
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	if len(names) > most {
		names = append(names[:most], "and others")
	}
	return &refusal{reason: configv1.ReasonTargetsUnavailable, message: strings.Join(names, "; ")}
}

// behind refuses if targets wait or progress after the rollout, such as those that were added
// later.
func (v *view) behind() *refusal {
	for _, t := range v.obs.Targets {
		if t.State == configv1.TargetWaiting || t.State == configv1.TargetProgressing {
			return &refusal{reason: configv1.ReasonRollingOut, message: said(t)}
		}
	}
	return nil
}

// readyMessage returns the message of condition Ready if it is True.
func (v *view) readyMessage() string {
	for _, t := range v.obs.Targets {
		if t.State == configv1.TargetPaused {
			return string(t.Kind) + " " + t.Name + " is paused, and gets the bundle once it is resumed"
		}
	}
	if len(v.obs.Targets) == 0 {
		return "There are no targets"
	}
	return ""
}

func (v *view) unrendered() *refusal {
	if v.Problem == nil {
		return nil
	}
	return &refusal{reason: xpv2.ConditionReason(v.Problem.Reason), message: v.Problem.Message}
}

func (v *view) unpublished() *refusal {
	if v.Taken == "" {
		return nil
	}
	return &refusal{reason: configv1.ReasonAlreadyExists, message: v.Taken + " is not this AppConfig's: delete it, or give it the label " + configv1.AppConfigLabel + ": " + v.AppConfig.Name + " to let " + appconfig.StableName(v.params().Application) + " hold the configuration"}
}
