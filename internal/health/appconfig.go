package health

import (
	"cmp"

	"google.golang.org/protobuf/types/known/structpb"
)

// Reasons of an AppConfig's Ready condition with which it has given up: it will
// not get ready without a change.
const (
	// ReasonRolledBack runs what was there before.
	ReasonRolledBack = "RolledBack"
	// ReasonRolloutFailed had nothing to go back to, or was told not to.
	ReasonRolloutFailed = "RolloutFailed"
	// ReasonInvalidConfig cannot be made into a bundle.
	ReasonInvalidConfig = "InvalidConfig"
)

// appConfig is a managed resource that says when it has given up.
func appConfig(obj *structpb.Struct) Status {
	s := readyCondition(obj)
	ready := condition(obj, "Ready")
	if s.IsHealthy() || ready["status"].GetStringValue() != "False" || isOld(ready, obj.GetFields()["metadata"].GetStructValue().GetFields()) {
		return s
	}
	switch ready["reason"].GetStringValue() {
	case ReasonRolledBack, ReasonRolloutFailed, ReasonInvalidConfig:
		return failed(cmp.Or(ready["message"].GetStringValue(), "Reconciliation failed"))
	default:
		return s
	}
}
