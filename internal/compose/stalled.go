package compose

import (
	"cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// ConditionStalled is True while nothing that the claim waits for helps: it has
// failed, or is refused. Flux, and whatever else judges by kstatus, calls it failed
// then instead of waiting for it
// (https://github.com/fluxcd/cli-utils/blob/v1.0.0/pkg/kstatus/status/generic.go#L41-L69).
//
// There is no Reconciling beside it: a Ready that is False says the same, and one more
// condition that changes with every pass is one more write.
const ConditionStalled = "Stalled"

// stalled is the condition for a response whose status is written. It follows the phase
// a pass later, for the reason that Ready does, but not after an edit: that is another try.
func stalled(rsp *fnv1.RunFunctionResponse, c *Claim) Condition {
	status := desiredStatus(rsp)
	now, message := isFailed(status["phase"]), status["message"].GetStringValue()
	if isFailed(c.status("phase")) != now {
		if now = c.isStalled(); now {
			was := c.condition(ConditionStalled)
			return Condition{Type: ConditionStalled, True: true, Reason: was["reason"].GetStringValue(), Message: was["message"].GetStringValue()}
		}
	}
	if !now {
		return Condition{Type: ConditionStalled, Reason: appsv1.ReasonNotStalled}
	}
	return Condition{Type: ConditionStalled, True: true, Reason: appsv1.ReasonFailed, Message: cmp.Or(message, "Reconciliation failed")}
}

func isFailed(phase *structpb.Value) bool { return phase.GetStringValue() == string(Failed) }

// setObservedGeneration in the status of a response: the newest one that became ready,
// or stalled (ObservedStatus of crossplane/crossplane v2.4.0), which is the claim's if it
// has now. It is written also where it is 0: kstatus takes a claim without the field, and
// without conditions yet, for one that is done.
//
// kstatus reads no generation of a condition: where the status has the newest one it
// takes the conditions as they are. Crossplane writes the status with those of its cache,
// and then the new ones. So they are about the newest generation before the status is.
func setObservedGeneration(rsp *fnv1.RunFunctionResponse, c *Claim, now bool) {
	generation := c.status("observedGeneration").GetNumberValue()
	if now {
		generation = float64(c.Generation())
	}
	desiredStatus(rsp)["observedGeneration"] = structpb.NewNumberValue(generation)
}

// isStalled tells whether the conditions say that the newest generation does not go on.
// A refusal leaves Ready as it is, so it is Synced that tells: Crossplane writes it with
// every pass.
func (c *Claim) isStalled() bool {
	return c.conditionStatus(ConditionStalled) == "True" && c.isAbout("Synced")
}

// isAbout tells whether a condition of the claim is about its newest generation. One
// without a generation is taken as it is.
func (c *Claim) isAbout(typ string) bool {
	condition := c.condition(typ)
	at, known := condition["observedGeneration"]
	return condition != nil && (!known || int64(at.GetNumberValue()) == c.Generation())
}

// isObserved tells whether the status has the newest generation.
func (c *Claim) isObserved() bool {
	return int64(c.status("observedGeneration").GetNumberValue()) == c.Generation()
}

// desiredStatus of a response in which it was set.
func desiredStatus(rsp *fnv1.RunFunctionResponse) map[string]*structpb.Value {
	return rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()
}
