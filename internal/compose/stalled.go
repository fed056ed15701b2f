package compose

import (
	"cmp"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// stalled returns condition Stalled for a response whose status is written. Flux, and any other
// client that evaluates kstatus, reports the claim as failed by it instead of waiting for it
// (https://github.com/fluxcd/cli-utils/blob/v1.0.0/pkg/kstatus/status/generic.go#L41-L69). The
// condition follows the phase one pass later, for the same reason as Ready does (see settle), but
// not after an edit, which is a new try.
//
// There is no condition Reconciling beside it: Ready False means the same, and one more condition
// that changes in every pass is one more write.
func stalled(rsp *fnv1.RunFunctionResponse, c *Claim) Condition {
	status := desiredStatus(rsp)
	now, message := isFailed(status[appsv1.FieldPhase]), status["message"].GetStringValue()
	if isFailed(c.status(appsv1.FieldPhase)) != now {
		if now = c.isStalled(); now {
			was := c.condition(appsv1.TypeStalled)
			return Condition{Type: appsv1.TypeStalled, True: true, Reason: was["reason"].GetStringValue(), Message: was["message"].GetStringValue()}
		}
	}
	if !now {
		return Condition{Type: appsv1.TypeStalled, Reason: appsv1.ReasonNotStalled}
	}
	return Condition{Type: appsv1.TypeStalled, True: true, Reason: appsv1.ReasonFailed, Message: cmp.Or(message, "Reconciliation failed")}
}

func isFailed(phase *structpb.Value) bool { return phase.GetStringValue() == string(Failed) }

// setObservedGeneration sets observedGeneration in the status of a response: the newest generation
// that became ready or stalled (ObservedStatus of crossplane/crossplane v2.4.0). It is the claim's
// current generation if that has become so now. It is written even if it is 0: a claim without it is
// judged by its conditions alone, and kstatus takes one that has neither for done. The first pass of a
// claim leaves it out (see holdsStatus), but its conditions report what they are about.
//
// kstatus reads no generation of a condition: if the status has the newest generation, it takes the
// conditions as they are. Crossplane writes the status with the conditions of its cache, and then
// the new conditions. So these must be about the newest generation before the status is.
func setObservedGeneration(rsp *fnv1.RunFunctionResponse, c *Claim, now bool) {
	generation := c.status("observedGeneration").GetNumberValue()
	if now {
		generation = float64(c.Generation())
	}
	desiredStatus(rsp)["observedGeneration"] = structpb.NewNumberValue(generation)
}

// isStalled reports whether the conditions report that the newest generation makes no progress. A
// refusal leaves Ready as it is, so the generation is that of Synced, which Crossplane writes in
// every pass.
func (c *Claim) isStalled() bool {
	return c.conditionStatus(appsv1.TypeStalled) == "True" && c.isAbout("Synced")
}

// isAbout reports whether the claim has a condition of a type that is about its newest generation.
// A condition without a generation counts as one.
func (c *Claim) isAbout(typ string) bool {
	condition := c.condition(typ)
	at, known := condition["observedGeneration"]
	return condition != nil && (!known || int64(at.GetNumberValue()) == c.Generation())
}

// isObserved reports whether the status has the newest generation.
func (c *Claim) isObserved() bool {
	return int64(c.status("observedGeneration").GetNumberValue()) == c.Generation()
}

// desiredStatus returns the status fields of a response in which the status was set.
func desiredStatus(rsp *fnv1.RunFunctionResponse) map[string]*structpb.Value {
	return rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()
}
