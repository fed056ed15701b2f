package compose

import (
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Condition is a condition of a claim.
type Condition struct {
	Type    string
	True    bool
	Reason  string
	Message string

	// Settles is true for a condition that is False for several reasons, one after the other, while the
	// claim starts for the first time. It keeps the first of them until then, or for startWindow.
	Settles bool
}

// PartReady returns the condition that a part of a claim is healthy. A part that is not declared is
// True with the reason Disabled, so that clients do not wait for it.
//
// What a part waits for changes often while it starts, and is in the status. Crossplane writes
// conditions in a request of their own after the status, so the same message in the condition would
// cost a second write to the claim.
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

// accepted returns the condition Accepted. It is False where the installation's settings cannot be
// used: the claim continues with its previous ones.
func accepted(settingsProblem error) Condition {
	if settingsProblem != nil {
		return Condition{Type: appsv1.TypeAccepted, Reason: appsv1.ReasonSettingsInvalid, Message: settingsProblem.Error() + ". The claim keeps the settings that it had"}
	}
	return Condition{Type: appsv1.TypeAccepted, True: true, Reason: appsv1.ReasonAccepted}
}

func pruned(kept []string) Condition {
	if len(kept) == 0 {
		return Condition{Type: appsv1.TypePruned, True: true, Reason: appsv1.ReasonPruned}
	}
	return Condition{
		Type:    appsv1.TypePruned,
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
