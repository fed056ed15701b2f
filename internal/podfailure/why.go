package podfailure

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// StartFor is how long a container may take to become ready, or a pod to be prepared, before that
// counts as a failure: images that are on the node start sooner.
const StartFor = 5 * time.Second

// Pod is what Why evaluates: a pod's status, and the names of what it mounts.
type Pod struct {
	corev1.PodStatus

	// Deleting is true if the pod is being deleted.
	Deleting bool

	// Mounts are the ConfigMaps and Secrets that must exist for the pod's volumes, for example
	// "ConfigMap shop".
	Mounts []string

	// Sidecars are the names of the init containers that keep running beside the other containers.
	// Only these init containers have probes.
	Sidecars []string
}

// Sidecars returns the names of a pod's sidecars: init containers that are always restarted.
func Sidecars(init []corev1.Container) []string {
	var out []string
	for _, c := range init {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c.Name)
		}
	}
	return out
}

// Why returns why a pod is not ready at a moment, also for causes that may pass by themselves. The
// first failed container counts. It is nil for a pod that is ready, has succeeded or is being
// deleted, and for one that was started less than StartFor ago and in which no container has
// failed.
func Why(pod Pod, now time.Time) *Failure {
	if pod.Deleting || pod.Phase == corev1.PodSucceeded {
		return nil
	}
	if pod.Phase == corev1.PodFailed && pod.Reason != "" {
		return &Failure{Kind: Stopped, Cause: pod.Reason + because(pod.Message)}
	}
	containers := slices.Concat(pod.InitContainerStatuses, pod.ContainerStatuses)
	if pod.Phase == corev1.PodFailed {
		// Sidecars are stopped after the container that has failed.
		containers = slices.Concat(pod.ContainerStatuses, pod.InitContainerStatuses)
	}
	for _, s := range containers {
		if f := crash(s, now); f != nil {
			return f
		}
	}
	if f := Of(&corev1.Pod{Status: withoutRecovered(pod.PodStatus, now)}); f != nil {
		return f
	}
	for _, s := range pod.InitContainerStatuses {
		if !s.Ready && !slices.Contains(pod.Sidecars, s.Name) && isStuck(s, now) {
			return &Failure{Kind: Initializing, Container: s.Name}
		}
	}
	for _, s := range containers {
		if f := probe(s, now); f != nil {
			return f
		}
	}
	if isMounted(pod.PodStatus) {
		return nil // It pulls images, which may take any time.
	}
	if pod.StartTime != nil && now.Sub(pod.StartTime.Time) >= StartFor && isPreparing(containers) {
		return &Failure{Kind: Preparing, Cause: strings.Join(pod.Mounts, ", ")}
	}
	return nil
}

// isMounted reports whether a pod's volumes and network are ready. The kubelet sets the condition
// since Kubernetes 1.29.
func isMounted(s corev1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReadyToStartContainers {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isStuck reports whether a container still runs that should have ended.
func isStuck(s corev1.ContainerStatus, now time.Time) bool {
	return s.State.Running != nil && now.Sub(s.State.Running.StartedAt.Time) >= StartFor
}

// runsAgain and runsWell are how long a container must have run until its last end no longer
// counts: one that ended once, and one that ended more often, whose back-off Kubernetes resets
// after that time.
const (
	runsAgain = time.Minute
	runsWell  = 10 * time.Minute
)

// hasRecovered reports whether a container has run long enough since its last end, or did not end
// by itself: its node was restarted.
func hasRecovered(s corev1.ContainerStatus, last *corev1.ContainerStateTerminated, now time.Time) bool {
	if last.Reason == "Unknown" {
		return true
	}
	after := runsWell
	if s.RestartCount < manyRestarts {
		after = runsAgain
	}
	return s.State.Running != nil && now.Sub(s.State.Running.StartedAt.Time) >= after
}

// withoutRecovered returns a status without the ends of containers that have recovered from them.
func withoutRecovered(s corev1.PodStatus, now time.Time) corev1.PodStatus {
	s.InitContainerStatuses, s.ContainerStatuses = slices.Clone(s.InitContainerStatuses), slices.Clone(s.ContainerStatuses)
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if last := list[i].LastTerminationState.Terminated; last != nil && hasRecovered(list[i], last, now) {
				list[i].LastTerminationState = corev1.ContainerState{}
			}
		}
	}
	return s
}

// crash returns the failure of a container that ended by itself and has not run well since, or nil.
func crash(s corev1.ContainerStatus, now time.Time) *Failure {
	last := s.State.Terminated
	if last == nil {
		last = s.LastTerminationState.Terminated
	}
	through := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
	switch {
	case last == nil, s.Ready, through, hasRecovered(s, last, now):
		return nil
	case last.ExitCode == 0 && (s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff"):
		return nil
	case last.Reason == "OOMKilled":
		return &Failure{Kind: OutOfMemory, Container: s.Name}
	}
	f := &Failure{Kind: CrashLoop, Container: s.Name, Cause: strings.TrimSuffix(fmt.Sprintf("exit code %d: %s", last.ExitCode, begun(lastLine(last.Message))), ": ")}
	if strings.Contains(strings.ToLower(last.Message), "read-only file system") {
		f.Restriction = ReadOnly
	}
	return f
}

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// probe returns the probe that a running container does not pass, as a failure, or nil.
func probe(s corev1.ContainerStatus, now time.Time) *Failure {
	running := s.State.Running
	if running == nil || s.Ready || now.Sub(running.StartedAt.Time) < StartFor {
		return nil
	}
	f := &Failure{Kind: Unready, Container: s.Name, Cause: "readiness"}
	if s.Started != nil && !*s.Started {
		f.Cause = "startup"
	}
	return f
}

// isPreparing reports whether no container of a pod was ever created.
func isPreparing(containers []corev1.ContainerStatus) bool {
	for _, s := range containers {
		if w := s.State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" || s.LastTerminationState.Terminated != nil {
			return false
		}
	}
	return len(containers) > 0
}

// podNamed matches the kubelet's identification of the pod in its messages.
var podNamed = regexp.MustCompile(`\s*\(pod: "[^"]*", container: [^)]*\)`)

// namedUser matches the kubelet's message about the user of an image that is not a number.
var namedUser = regexp.MustCompile(`image has non-numeric user \(([^)]*)\)`)

// starting returns the kubelet's reason not to start a container, and the restriction behind it.
func starting(message string) (string, Restriction) {
	message = podNamed.ReplaceAllString(message, "")
	m := namedUser.FindStringSubmatch(message)
	if strings.Contains(message, "image will run as root") || m != nil && m[1] == "root" {
		return "its image runs as root, which is not allowed", NoRoot
	}
	if m != nil {
		return "its image names its user " + m[1] + " without a number, so that it might be root", NoNamedUser
	}
	return begun(message), ""
}

// begun returns a container runtime's reason why it could not start a process, without the context
// before it and without the word with which the runtime ends its own errors: failed to create
// containerd task: … unable to start container process: exec: "x": …: unknown.
func begun(message string) string {
	if i := strings.LastIndex(message, "unable to start container process: "); i >= 0 {
		message = strings.TrimPrefix(message[i:], "unable to start container process: ")
	}
	return strings.TrimSuffix(message, ": unknown")
}

// uncreated matches the beginning of the API server's refusal to create a pod, and used the usage
// that a quota reports.
var (
	uncreated = regexp.MustCompile(`^.*? is forbidden: `)
	used      = regexp.MustCompile(`, used: .*$`)
)

// Uncreated returns why pods are not created, from the message of their controller.
func Uncreated(message string) string {
	return "cannot create pods: " + used.ReplaceAllString(uncreated.ReplaceAllString(message, ""), "")
}
