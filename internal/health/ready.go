package health

import (
	"cmp"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// readyCondition judges composite and managed resources: healthy when Ready is
// True for the current generation. What they wait for they say themselves, in
// their own status. It is not repeated while they are made or changed, when it
// changes all the time: each change would be two writes to their owner, whose
// events Crossplane counts. One that was well and is not any more is explained, and so
// are pods that do not come up.
func readyCondition(obj *structpb.Struct) Status {
	meta := obj.GetFields()["metadata"].GetStructValue().GetFields()
	st := obj.GetFields()["status"].GetStructValue().GetFields()
	msg := st["message"].GetStringValue()

	ready, synced := condition(obj, "Ready"), condition(obj, "Synced")
	accepted := condition(obj, "Accepted")
	switch {
	// Crossplane writes Synced with every pass, so it tells what generation
	// all that follows is about.
	case isOld(synced, meta):
		return progressing(notReady(obj))
	case accepted["status"].GetStringValue() == "False" && accepted["reason"].GetStringValue() != appsv1.ReasonSettingsInvalid:
		return failed(cmp.Or(accepted["message"].GetStringValue(), "Rejected"))
	case st["phase"].GetStringValue() == "Failed":
		return failed(cmp.Or(msg, "Reconciliation failed"))
	case synced["status"].GetStringValue() == "False":
		return progressing(cmp.Or(synced["message"].GetStringValue(), "It is not synced"))
	case st["phase"].GetStringValue() == "Degraded" && ready["status"].GetStringValue() != "True":
		return progressing(cmp.Or(strings.TrimPrefix(msg, waitingFor), notReady(obj)))
	case ready["status"].GetStringValue() != "True" || isOld(ready, meta):
		return progressing(cmp.Or(st["podFailure"].GetStringValue(), notReady(obj)))
	default:
		return healthy()
	}
}

// waitingFor begins what a claim says of the parts that hold it up. Their owner
// says the same of it, and once is enough.
const waitingFor = "Waiting for "

// isOld tells whether a condition is about an older generation. One without a
// generation is older than the field, and taken as it is.
func isOld(condition, meta map[string]*structpb.Value) bool {
	og, ok := condition["observedGeneration"]
	return ok && og.GetNumberValue() < meta["generation"].GetNumberValue()
}

// notReady says where to look.
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
