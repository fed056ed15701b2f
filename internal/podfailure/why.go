package podfailure

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// StartFor is how long a container may take to become ready, or a pod to be prepared, until
// that is a reason to wait for it: images that are on the node start sooner.
const StartFor = 5 * time.Second

// Pod is what Why looks at: a pod's status, and the names of what it mounts.
type Pod struct {
	corev1.PodStatus

	// Deleting tells that the pod is to go.
	Deleting bool

	// Mounts are the ConfigMaps and Secrets that must exist for the pod's volumes, for example
	// "ConfigMap shop".
	Mounts []string

	// Sidecars are the names of init containers that run beside the others, which alone of init
	// containers have probes.
	Sidecars []string
}

// Sidecars of a pod: init containers that are always restarted.
func Sidecars(init []corev1.Container) []string {
	var out []string
	for _, c := range init {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c.Name)
		}
	}
	return out
}

// Why a pod is not ready at a moment, also for what may pass by itself. It is nil for a pod that
// is ready, that was started less than StartFor ago, or that is being deleted. The first
// container in trouble counts.
func Why(pod Pod, now time.Time) *Failure {
	if pod.Deleting || pod.Phase == corev1.PodSucceeded {
		return nil
	}
	if pod.Phase == corev1.PodFailed && pod.Reason != "" {
		return &Failure{Kind: Stopped, Cause: pod.Reason + because(pod.Message)}
	}
	containers := slices.Concat(pod.InitContainerStatuses, pod.ContainerStatuses)
	if pod.Phase == corev1.PodFailed {
		// Its sidecars are stopped after the container that has failed.
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
		return nil // It pulls images, which takes what it takes.
	}
	if pod.StartTime != nil && now.Sub(pod.StartTime.Time) >= StartFor && isPreparing(containers) {
		return &Failure{Kind: Preparing, Cause: strings.Join(pod.Mounts, ", ")}
	}
	return nil
}

// isMounted tells whether a pod's volumes and its network are ready: the kubelet says so since
// Kubernetes 1.29.
func isMounted(s corev1.PodStatus) bool {
	for _, c := range s.Conditions {
		if c.Type == corev1.PodReadyToStartContainers {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// isStuck tells whether a container runs that should have ended.
func isStuck(s corev1.ContainerStatus, now time.Time) bool {
	return s.State.Running != nil && now.Sub(s.State.Running.StartedAt.Time) >= StartFor
}

// For how long a container must have run until its last end is forgotten: one that ended once,
// and one that ended often, for which Kubernetes counts anew after that time.
const (
	runsAgain = time.Minute
	runsWell  = 10 * time.Minute
)

// hasRecovered tells whether a container that has ended before runs since, or has not ended by
// itself: its node was started again.
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

// withoutRecovered is a status without the ends of containers that have recovered from them.
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

// crash of a container that has ended by itself and does not run well since.
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

// lastLine of a text that is not empty.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// probe that a container which runs does not pass.
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

// isPreparing tells whether no container of a pod was ever created.
func isPreparing(containers []corev1.ContainerStatus) bool {
	for _, s := range containers {
		if w := s.State.Waiting; w == nil || w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" || s.LastTerminationState.Terminated != nil {
			return false
		}
	}
	return len(containers) > 0
}

// podNamed is where the kubelet says of which pod it speaks.
var podNamed = regexp.MustCompile(`\s*\(pod: "[^"]*", container: [^)]*\)`)

// namedUser is how the kubelet tells the user of an image that is not a number.
var namedUser = regexp.MustCompile(`image has non-numeric user \(([^)]*)\)`)

// starting is the kubelet's reason not to start a container, and the restriction behind it.
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

// begun is what a container runtime says of a process that it could not start, without what it
// was doing before and without the word that it ends each error of its own with:
// failed to create containerd task: … unable to start container process: exec: "x": …: unknown.
func begun(message string) string {
	if i := strings.LastIndex(message, "unable to start container process: "); i >= 0 {
		message = strings.TrimPrefix(message[i:], "unable to start container process: ")
	}
	return strings.TrimSuffix(message, ": unknown")
}

// uncreated is how the API server refuses to create a pod, and used what a quota has seen used.
var (
	uncreated = regexp.MustCompile(`^.*? is forbidden: `)
	used      = regexp.MustCompile(`, used: .*$`)
)

// Uncreated is the reason for which pods are not created, from what their controller reports.
func Uncreated(message string) string {
	return "cannot create pods: " + used.ReplaceAllString(uncreated.ReplaceAllString(message, ""), "")
}
