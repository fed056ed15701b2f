package health

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
)

// TroubleOf pods says in words why the first one of them, by name, does not come
// up, or "". There are no counts and times in it, and not the changing words of
// one and the same trouble.
func TroubleOf(pods []*structpb.Struct) string {
	var out []string
	for _, p := range pods {
		if t := troubleOf(p); t != "" {
			out = append(out, "pod "+p.GetFields()["metadata"].GetStructValue().GetFields()["name"].GetStringValue()+" "+t)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return slices.Min(out)
}

func troubleOf(pod *structpb.Struct) string {
	status := pod.GetFields()["status"].GetStructValue()
	for _, v := range status.GetFields()["conditions"].GetListValue().GetValues() {
		c := v.GetStructValue().GetFields()
		if c["type"].GetStringValue() == "PodScheduled" && c["reason"].GetStringValue() == "Unschedulable" {
			return "can not be scheduled: " + firstSentence(c["message"].GetStringValue())
		}
	}
	for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, v := range status.GetFields()[field].GetListValue().GetValues() {
			c := v.GetStructValue().GetFields()
			waiting := c["state"].GetStructValue().GetFields()["waiting"].GetStructValue().GetFields()
			if t := troubleWaiting(waiting["reason"].GetStringValue(), c["image"].GetStringValue(), waiting["message"].GetStringValue()); t != "" {
				return t
			}
		}
	}
	return ""
}

// troubleWaiting says why a container waits, "" for what passes by itself.
func troubleWaiting(reason, image, message string) string {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff":
		return "can not pull image " + image
	case "InvalidImageName":
		return "can not use image name " + image
	case "CrashLoopBackOff":
		return "crashes again and again: look at its log"
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return "can not start: " + message
	}
	return ""
}

// firstSentence of a message of the scheduler, which goes on about nodes and
// preemption.
func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	return s
}
