package health

import (
	"google.golang.org/protobuf/types/known/structpb"
)

// Available returns the health of a Deployment whose number of pods changes by itself: healthy when
// it is available and all its pods are of the newest template, even while more of them start.
func Available(deployment *structpb.Struct) Status {
	meta := deployment.GetFields()["metadata"].GetStructValue().GetFields()
	st := deployment.GetFields()["status"].GetStructValue().GetFields()
	if st["observedGeneration"].GetNumberValue() < meta["generation"].GetNumberValue() {
		return progressing(podsUnready)
	}
	available := condition(deployment, "Available")["status"].GetStringValue() == "True"
	if available && st["updatedReplicas"].GetNumberValue() == st["replicas"].GetNumberValue() && st["availableReplicas"].GetNumberValue() > 0 {
		return healthy()
	}
	return Of(deployment)
}
