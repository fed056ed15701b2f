package podfailure

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StartFor is how long a container may take to become ready, or a pod to be prepared, before that
// counts as a failure: images that are on the node start sooner.
const StartFor = 5 * time.Second

// sidecars returns the names of a pod's sidecars: init containers that are always restarted. Only
// these init containers have probes.
func sidecars(init []corev1.Container) []string {
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
// failed. Of the pod's spec the containers and the volumes count.
func Why(pod *corev1.Pod, now time.Time) *Failure {
	st := pod.Status
	if pod.DeletionTimestamp != nil || st.Phase == corev1.PodSucceeded {
		return nil
	}
	if st.Phase == corev1.PodFailed && st.Reason != "" {
		return &Failure{Kind: Stopped, Cause: st.Reason + because(st.Message)}
	}
	containers := slices.Concat(st.InitContainerStatuses, st.ContainerStatuses)
	if st.Phase == corev1.PodFailed {
		// Sidecars are stopped after the container that has failed.
		containers = slices.Concat(st.ContainerStatuses, st.InitContainerStatuses)
	}
	for _, s := range containers {
		if f := crash(s, now); f != nil {
			return f
		}
	}
	if f := Of(&corev1.Pod{Status: withoutRecovered(st, now)}); f != nil {
		return f
	}
	beside := sidecars(pod.Spec.InitContainers)
	for _, s := range st.InitContainerStatuses {
		if !s.Ready && !slices.Contains(beside, s.Name) && isStuck(s, now) {
			return &Failure{Kind: Initializing, Container: s.Name}
		}
	}
	for _, s := range containers {
		if f := probe(s, now); f != nil {
			f.Cause += probed(pod.Spec, s.Name, f.Cause)
			return f
		}
	}
	if isMounted(st) {
		return nil // It pulls images, which may take any time.
	}
	if st.StartTime != nil && now.Sub(st.StartTime.Time) >= StartFor && isPreparing(containers) {
		return &Failure{Kind: Preparing, Cause: strings.Join(mounts(pod.Spec.Volumes), ", ")}
	}
	return nil
}

// Due returns how soon a pod that starts counts as failed if nothing changes, or 0 if it does not: no event announces that.
func Due(pod *corev1.Pod, now time.Time) time.Duration {
	if pod.DeletionTimestamp != nil {
		return 0
	}
	next := time.Duration(0)
	at := func(start time.Time) {
		if left := start.Add(StartFor).Sub(now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	st := pod.Status
	if st.StartTime != nil && !isMounted(st) {
		at(st.StartTime.Time)
	}
	for _, s := range slices.Concat(st.InitContainerStatuses, st.ContainerStatuses) {
		if s.State.Running != nil && !s.Ready {
			at(s.State.Running.StartedAt.Time)
		}
	}
	return next
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

// isProbed reports whether a container was killed and runs again without passing a probe: that was
// the reason then, too.
func isProbed(s corev1.ContainerStatus, last *corev1.ContainerStateTerminated, now time.Time) bool {
	return wasKilled(last) && probe(s, now) != nil
}

// withoutRecovered returns a status without the ends of containers that are no failure any more.
func withoutRecovered(s corev1.PodStatus, now time.Time) corev1.PodStatus {
	s.InitContainerStatuses, s.ContainerStatuses = slices.Clone(s.InitContainerStatuses), slices.Clone(s.ContainerStatuses)
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for i := range list {
			if last := list[i].LastTerminationState.Terminated; last != nil && (hasRecovered(list[i], last, now) || isProbed(list[i], last, now)) {
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
	case last == nil, s.Ready, through, hasRecovered(s, last, now), isProbed(s, last, now):
		return nil
	case last.ExitCode == 0 && (s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff"):
		return nil
	case last.Reason == "OOMKilled":
		return &Failure{Kind: OutOfMemory, Container: s.Name}
	}
	code := fmt.Sprintf("exit code %d", last.ExitCode)
	if wasKilled(last) {
		code += ", as after a failed startup or liveness probe"
	}
	f := &Failure{Kind: CrashLoop, Container: s.Name, Cause: strings.TrimSuffix(code+": "+begun(lastLine(last.Message)), ": ")}
	if strings.Contains(strings.ToLower(last.Message), "read-only file system") {
		f.Restriction = ReadOnly
	}
	return f
}

// wasKilled reports whether a signal has ended a container, and not for lack of memory: SIGTERM, or
// SIGKILL after the grace period.
func wasKilled(last *corev1.ContainerStateTerminated) bool {
	const sigkill, sigterm = 128 + 9, 128 + 15
	return last.Reason != "OOMKilled" && (last.ExitCode == sigkill || last.ExitCode == sigterm)
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
	f := &Failure{Kind: Unready, Container: s.Name, Cause: readinessProbe}
	if s.Started != nil && !*s.Started {
		f.Cause = startupProbe
	}
	return f
}

// The probes that keep a container from being ready.
const (
	startupProbe   = "startup probe"
	readinessProbe = "readiness probe"
)

// probed returns what a probe of a container asks for, to follow the probe's name, or "".
func probed(spec corev1.PodSpec, container, probe string) string {
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if c.Name != container {
			continue
		}
		p := c.ReadinessProbe
		if probe == startupProbe {
			p = c.StartupProbe
		}
		switch {
		case p == nil:
		case p.HTTPGet != nil:
			return ", GET " + p.HTTPGet.Path + " at port " + portOf(c, p.HTTPGet.Port)
		case p.TCPSocket != nil:
			return ", a connection to port " + portOf(c, p.TCPSocket.Port)
		}
	}
	return ""
}

// portOf returns the number of a container's port.
func portOf(c corev1.Container, port intstr.IntOrString) string {
	for _, p := range c.Ports {
		if port.Type == intstr.String && p.Name == port.StrVal {
			return strconv.Itoa(int(p.ContainerPort))
		}
	}
	return port.String()
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
