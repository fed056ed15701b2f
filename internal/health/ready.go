package health

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// readyCondition returns the health of a composite or managed resource: healthy when Ready is True
// for the current generation. What it waits for is in its own status. That is not repeated while
// the resource is created or changed, when it changes often: each change would cost two writes to
// its owner, whose events Crossplane counts. It is repeated if the resource was healthy before and
// is not any more, or if its pods do not start.
func readyCondition(obj *structpb.Struct) Status {
	meta := obj.GetFields()["metadata"].GetStructValue().GetFields()
	st := obj.GetFields()["status"].GetStructValue().GetFields()
	msg := st["message"].GetStringValue()

	ready, synced := condition(obj, "Ready"), condition(obj, "Synced")
	accepted := condition(obj, appsv1.TypeAccepted)
	switch {
	// Crossplane writes Synced in every pass, so its generation is that of all conditions below.
	case isOld(synced, meta):
		return progressing(notReady(obj))
	case accepted["status"].GetStringValue() == "False" && accepted["reason"].GetStringValue() != appsv1.ReasonSettingsInvalid:
		return failed(cmp.Or(accepted["message"].GetStringValue(), "Rejected"))
	case st[appsv1.FieldPhase].GetStringValue() == appsv1.PhaseFailed:
		return failed(cmp.Or(msg, "Reconciliation failed"))
	case synced["status"].GetStringValue() == "False":
		return progressing(cmp.Or(synced["message"].GetStringValue(), "It is not synced"))
	case st[appsv1.FieldPhase].GetStringValue() == appsv1.PhaseDegraded && ready["status"].GetStringValue() != "True":
		return progressing(cmp.Or(strings.TrimPrefix(msg, waitingFor), notReady(obj)))
	case ready["status"].GetStringValue() != "True" || isOld(ready, meta):
		return progressing(cmp.Or(st[appsv1.FieldPodFailure].GetStringValue(), notReady(obj)))
	default:
		return healthy()
	}
}

// waitingFor begins a claim's message about the parts that are not healthy. The message of its
// owner begins the same way, so it is not repeated there.
const waitingFor = "Waiting for "

// isOld reports whether a condition is about an older generation. One without a generation was
// written before that field existed, and counts as current.
func isOld(condition, meta map[string]*structpb.Value) bool {
	og, ok := condition["observedGeneration"]
	return ok && og.GetNumberValue() < meta["generation"].GetNumberValue()
}

// notReady returns a message that names the object to inspect.
func notReady(obj *structpb.Struct) string {
	name := obj.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()
	return "Not ready yet: see " + obj.GetFields()["kind"].GetStringValue() + " " + name
}

// condition returns the fields of the status condition of a type, or nil.
func condition(obj *structpb.Struct, typ string) map[string]*structpb.Value {
	for _, v := range obj.GetFields()["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		if c := v.GetStructValue().GetFields(); c["type"].GetStringValue() == typ {
			return c
		}
	}
	return nil
}
