package health

import (
	"cmp"

	"google.golang.org/protobuf/types/known/structpb"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// appConfig is a managed resource whose Ready condition has a reason with which it has given up:
// it will not get ready without a change.
func appConfig(obj *structpb.Struct) Status {
	s := readyCondition(obj)
	ready := condition(obj, "Ready")
	if s.IsHealthy() || ready["status"].GetStringValue() != "False" || isOld(ready, obj.GetFields()["metadata"].GetStructValue().GetFields()) {
		return s
	}
	switch ready["reason"].GetStringValue() {
	case configv1.ReasonRolledBack, configv1.ReasonRolloutFailed, configv1.ReasonInvalidConfig:
		return failed(cmp.Or(ready["message"].GetStringValue(), "Reconciliation failed"))
	default:
		return s
	}
}
