package report

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// Pods in trouble, in words, given what was said before: Kubernetes alternates
// between saying why and saying only that it tries again.
func Pods(pods []*corev1.Pod, before []instance.Problem) []instance.Problem {
	var problems []instance.Problem
	for _, pod := range pods {
		message := trouble(pod)
		if message == "" {
			continue
		}
		p := instance.Problem{Subject: instance.SubjectPod, Name: pod.Name, Message: pod.Name + ": " + message}
		i := slices.IndexFunc(before, func(b instance.Problem) bool {
			return b.Subject == p.Subject && b.Name == p.Name && strings.HasPrefix(b.Message, p.Message+": ")
		})
		if i >= 0 {
			p = before[i]
		}
		problems = append(problems, p)
	}
	return problems
}

// trouble of a pod, or "".
func trouble(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return ""
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return "cannot be scheduled: " + scheduling(c.Message)
		}
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if message := container(s); message != "" {
			return message
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
			return "cannot start container " + s.Name + ": " + w.Message
		}
	}
	last := s.LastTerminationState.Terminated
	// One failure is an accident, and may have been a test of failover.
	if s.Ready || last == nil || last.ExitCode == 0 || s.RestartCount < 2 || s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 {
		return ""
	}
	if last.Reason == "OOMKilled" {
		return "container " + s.Name + " keeps running out of memory"
	}
	return "container " + s.Name + " keeps failing"
}

// pulling says why an image is not to be had, in two words that do not change.
func pulling(message string) string {
	message = strings.ToLower(message)
	for _, known := range []struct{ sign, words string }{
		{"not found", "not found"},
		{"manifest unknown", "not found"},
		{"unauthorized", "not allowed"},
		{"denied", "not allowed"},
		{"forbidden", "not allowed"},
		{"no such host", "no such registry"},
		{"connection refused", "the registry does not answer"},
		{"i/o timeout", "the registry does not answer"},
		{"invalidimagename", "that is no image's name"},
		{"couldn't parse image", "that is no image's name"},
		{"neverpull", "it is not on the node"},
	} {
		if strings.Contains(message, known.sign) {
			return ": " + known.words
		}
	}
	return ""
}

var (
	nodesAvailable = regexp.MustCompile(`^\d+/\d+ nodes are available:?\s*`)
	preemption     = regexp.MustCompile(`\s*preemption: .*$`)
	counted        = regexp.MustCompile(`(^|, )\d+ `)
)

// scheduling says what the scheduler does, without how many nodes there are.
func scheduling(message string) string {
	message = nodesAvailable.ReplaceAllString(message, "")
	message = preemption.ReplaceAllString(message, "")
	message = counted.ReplaceAllString(message, "$1")
	parts := strings.Split(strings.TrimSuffix(strings.TrimSpace(message), "."), ", ")
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}
