package health

import (
	"google.golang.org/protobuf/types/known/structpb"
)

// job is healthy once it has completed: Jobs are gates here. kstatus calls a
// Job current as soon as it has started.
func job(obj *structpb.Struct) Status {
	if c := condition(obj, "Complete"); c["status"].GetStringValue() == "True" {
		return healthy()
	}
	if c := condition(obj, "Failed"); c["status"].GetStringValue() == "True" {
		return failed("The Job failed (" + c["reason"].GetStringValue() + "): look at its pods' logs")
	}
	if st := obj.GetFields()["status"].GetStructValue().GetFields(); st["failed"].GetNumberValue() > 0 {
		return progressing("A pod of the Job failed and is tried again: look at its pods' logs")
	}
	return progressing("The Job has not completed yet")
}
