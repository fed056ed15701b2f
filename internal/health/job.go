package health

import (
	"google.golang.org/protobuf/types/known/structpb"
)

// job returns the health of a Job: healthy once it has completed, since other components wait for
// that. kstatus reports a Job as current as soon as it has started.
func job(obj *structpb.Struct) Status {
	if c := condition(obj, "Complete"); c["status"].GetStringValue() == "True" {
		return healthy()
	}
	if reason, failed := JobFailure(obj); failed {
		return Status{State: Failed, Message: "The Job failed (" + reason + "): check the logs of its pods"}
	}
	if st := obj.GetFields()["status"].GetStructValue().GetFields(); st["failed"].GetNumberValue() > 0 {
		return progressing("A pod of the Job failed and is tried again: check the logs of its pods")
	}
	return progressing("The Job has not completed yet")
}

// JobFailure returns the reason why a Job has failed, and whether it has.
func JobFailure(obj *structpb.Struct) (reason string, failed bool) {
	c := condition(obj, "Failed")
	return c["reason"].GetStringValue(), c["status"].GetStringValue() == "True"
}
