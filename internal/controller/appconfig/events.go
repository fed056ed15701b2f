package appconfig

import (
	"errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// events returns the events for what has changed.
func (v *view) events() []event.Event {
	var out []event.Event
	known := &v.AppConfig.Status.AtProvider
	if p := v.obs.Pending; p != "" && (known.Pending != p || !known.PendingSince.Equal(v.obs.PendingSince)) {
		out = append(out, event.Normal(event.Reason(configv1.ReasonRollingOut), "Rolling out bundle "+p))
	}
	switch v.d.Ended {
	case Succeeded:
		out = append(out, event.Normal(event.Reason(configv1.ReasonRolledOut), "All targets run bundle "+v.obs.LastGood))
	case RolledBack, Failed:
		r := v.failed()
		message := r.message
		if l := v.obs.Failed.Log; l != "" {
			message += "\n" + l
		}
		out = append(out, event.Warning(event.Reason(r.reason), errors.New(message)))
	case Superseded:
	}
	for _, c := range v.d.Conditions {
		was := v.AppConfig.GetCondition(c.Type)
		if c.Type == TypeRolledOut {
			// Condition Ready reports it too.
			continue
		}
		if c.Status == corev1.ConditionFalse && reportedReasons[c.Reason] && (was.Status != c.Status || was.Reason != c.Reason) {
			out = append(out, event.Warning(event.Reason(c.Reason), errors.New(c.Message)))
		}
	}
	return out
}

// reportedReasons are the reasons that no event of a rollout reports.
var reportedReasons = map[xpv2.ConditionReason]bool{
	configv1.ReasonInvalidConfig:      true,
	configv1.ReasonTargetsUnavailable: true,
	configv1.ReasonAlreadyExists:      true,
}
