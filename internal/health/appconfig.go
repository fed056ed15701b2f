package health

import (
	"cmp"

	"google.golang.org/protobuf/types/known/structpb"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// appConfig returns the health of an AppConfig. It has failed, and will not become ready without a
// change, if its Ready condition has a reason with which the provider has given up.
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
