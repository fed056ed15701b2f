package compose

import (
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Types of the conditions that the kernel sets on every claim.
const (
	// ConditionAccepted is False while the claim, or the installation's
	// settings, say something that cannot be done. What runs is left alone.
	ConditionAccepted = "Accepted"

	// ConditionPruned is False while something that is no longer part of the
	// claim stays, since it holds data.
	ConditionPruned = "Pruned"
)

// Condition of a claim.
type Condition struct {
	Type    string
	True    bool
	Reason  string
	Message string
}

// PartReady is the condition that a part of a claim is healthy. A part that is
// not declared is reported with the reason Disabled, and nobody waits for it.
//
// What a part waits for changes all the time while it comes up, and is in the
// status. Conditions are written after it, by themselves: they would be a second
// write to the claim, for the same words.
func PartReady(typ string, o Outcome, part string) Condition {
	p, ok := o.Part(part)
	switch {
	case !ok:
		return Condition{Type: typ, True: true, Reason: appsv1.ReasonDisabled, Message: "Not part of this claim"}
	case p.Ready:
		return Condition{Type: typ, True: true, Reason: appsv1.ReasonHealthy}
	case o.failed[part]:
		return Condition{Type: typ, Reason: appsv1.ReasonFailed, Message: p.Message}
	default:
		return Condition{Type: typ, Reason: appsv1.ReasonWaiting}
	}
}

// accepted is False where the installation's settings cannot be used: the claim
// goes on with those that it had.
func accepted(settingsProblem error) Condition {
	if settingsProblem != nil {
		return Condition{Type: ConditionAccepted, Reason: appsv1.ReasonSettingsInvalid, Message: settingsProblem.Error() + ". The claim goes on with the settings that it had"}
	}
	return Condition{Type: ConditionAccepted, True: true, Reason: appsv1.ReasonAccepted}
}

func pruned(kept []string) Condition {
	if len(kept) == 0 {
		return Condition{Type: ConditionPruned, True: true, Reason: appsv1.ReasonPruned}
	}
	return Condition{
		Type:    ConditionPruned,
		Reason:  appsv1.ReasonHoldsData,
		Message: "No longer part of the claim, but kept since they hold data: " + strings.Join(kept, ", "),
	}
}

func (c Condition) toProto() *fnv1.Condition {
	out := &fnv1.Condition{
		Type:   c.Type,
		Status: fnv1.Status_STATUS_CONDITION_FALSE,
		Reason: c.Reason,
		Target: fnv1.Target_TARGET_COMPOSITE.Enum(),
	}
	if c.True {
		out.Status = fnv1.Status_STATUS_CONDITION_TRUE
	}
	if c.Message != "" {
		out.Message = &c.Message
	}
	return out
}
