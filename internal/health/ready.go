package health

import (
	"google.golang.org/protobuf/types/known/structpb"
)

// readyCondition judges composite and managed resources: healthy when Ready is
// True for the current generation. They say themselves, in status.message, what
// they wait for.
func readyCondition(obj *structpb.Struct) Status {
	meta := obj.GetFields()["metadata"].GetStructValue().GetFields()
	st := obj.GetFields()["status"].GetStructValue().GetFields()
	msg := st["message"].GetStringValue()

	ready, synced := condition(obj, "Ready"), condition(obj, "Synced")
	// What was said of an older generation says nothing of this one.
	// Conditions without a generation are older than the field.
	for _, c := range []map[string]*structpb.Value{synced, ready} {
		if og, ok := c["observedGeneration"]; ok && og.GetNumberValue() < meta["generation"].GetNumberValue() {
			return progressing("Its last change has not been taken up yet")
		}
	}
	switch {
	case st["phase"].GetStringValue() == "Failed":
		return failed(first(msg, "It failed"))
	case synced["status"].GetStringValue() == "False":
		return progressing(first(synced["message"].GetStringValue(), msg, "It is not synced"))
	case ready["status"].GetStringValue() != "True":
		return progressing(first(msg, "Not ready yet"))
	default:
		return healthy()
	}
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

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
