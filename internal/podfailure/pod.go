package podfailure

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// manyRestarts is from where on a container keeps failing: one failure is an
// accident, and may have been a test of failover.
const manyRestarts = 2

// Of a pod, in words that follow its name, or "". The first container in trouble
// speaks for all. A pod that is being deleted is in none.
func Of(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return "cannot be scheduled: " + scheduling(c.Message)
		}
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if words := container(s); words != "" {
			return words
		}
	}
	return ""
}

// container that does not run, or does not keep running, in words.
func container(s corev1.ContainerStatus) string {
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable":
			return "cannot pull image " + s.Image + pulling(w.Message)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return "cannot start container " + s.Name + because(w.Message)
		}
	}
	switch {
	case !isFailing(s):
		return ""
	case s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.Reason == "OOMKilled":
		return "container " + s.Name + " keeps running out of memory"
	}
	return "container " + s.Name + " keeps failing"
}

// isFailing tells whether a container fails again and again, be it that it is
// being tried once more or that Kubernetes waits before it does.
func isFailing(s corev1.ContainerStatus) bool {
	if s.Ready || s.RestartCount < manyRestarts {
		return false
	}
	if w := s.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
		return true
	}
	// An init container that is through has failed before, and is no trouble.
	through := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	last := s.LastTerminationState.Terminated
	return !through && last != nil && last.ExitCode != 0
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}
