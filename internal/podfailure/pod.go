package podfailure

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// manyRestarts is the number of restarts from which on a container keeps failing: one failure is an
// accident, and may have been a test of failover.
const manyRestarts = 2

// Kind is the kind of a failure.
type Kind string

// The kinds of failures. Those before ContainerStart may pass by themselves. Only Why returns
// Initializing (an init container does not end), Preparing (volumes are not mounted yet), Unready
// (a container does not pass a probe) and Stopped (the node has ended the pod).
const (
	Unschedulable  Kind = "Unschedulable"
	Initializing   Kind = "Initializing"
	Preparing      Kind = "Preparing"
	Unready        Kind = "Unready"
	Stopped        Kind = "Stopped"
	ImagePull      Kind = "ImagePull"
	ContainerStart Kind = "ContainerStart"
	OutOfMemory    Kind = "OutOfMemory"
	CrashLoop      Kind = "CrashLoop"
)

// Restriction is what the restricted pod security standard, with a read-only root file system,
// forbids an image.
type Restriction string

// The restrictions because of which images fail.
const (
	// NoRoot is the restriction for an image that runs as root.
	NoRoot Restriction = "NoRoot"
	// NoNamedUser is the restriction for an image whose user is not a number: it might be root.
	NoNamedUser Restriction = "NoNamedUser"
	// ReadOnly is the restriction for an image that writes to its root file system.
	ReadOnly Restriction = "ReadOnly"
)

// Lift returns what to set in a WebApp because of a failure, or "".
func (f *Failure) Lift() string {
	switch f.Restriction {
	case NoRoot:
		return "set runAsUser to the number of another user, or podSecurity to baseline outside production"
	case NoNamedUser:
		return "set runAsUser to that user's number"
	case ReadOnly:
		return "mount a volume with emptyDir where it writes, or set podSecurity to baseline outside production"
	}
	switch {
	case f.Kind == OutOfMemory:
		return "raise resources.limits.memory"
	case f.Kind == Unready && strings.HasPrefix(f.Cause, startupProbe):
		return "set port to the one that it listens on, or probe to what it answers"
	}
	return ""
}

// Failure is why a pod does not become ready.
type Failure struct {
	Kind Kind

	// Container is the name of the container that does not run or is not ready. It is "" for
	// Unschedulable, Preparing and Stopped.
	Container string

	// Image is the image of that container, for ImagePull.
	Image string

	// Cause is the reason that the reporting component gives, without what changes, or "".
	Cause string

	// Restriction is the restriction of the pod that the image violates, or "".
	Restriction Restriction

	// MissingKind and Missing are the kind and the name of the ConfigMap or Secret whose absence
	// causes ContainerStart, or "".
	MissingKind, Missing string
}

// String describes the failure, to follow the name of the pod. It is "" for nil.
func (f *Failure) String() string {
	if f == nil {
		return ""
	}
	switch f.Kind {
	case Unschedulable:
		return "cannot be scheduled" + because(f.Cause)
	case ImagePull:
		return "cannot pull image " + f.Image + because(f.Cause)
	case ContainerStart:
		return "cannot start container " + f.Container + because(f.Cause)
	case OutOfMemory:
		return "container " + f.Container + " keeps running out of memory"
	case Unready:
		return "container " + f.Container + " runs and does not pass its " + f.Cause
	case Initializing:
		return "init container " + f.Container + " has not ended yet"
	case Stopped:
		return "was stopped" + because(f.Cause)
	case Preparing:
		if f.Cause == "" {
			return "cannot start yet: its volumes or its network are not ready"
		}
		return "cannot start yet: its volumes or its network are not ready. These must exist: " + f.Cause
	case CrashLoop:
	}
	return "container " + f.Container + " keeps failing" + because(f.Cause)
}

// Of returns the failure of a pod, or nil. The first failed container counts. A pod that is being
// deleted has none.
func Of(pod *corev1.Pod) *Failure {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &Failure{Kind: Unschedulable, Cause: scheduling(c.Message)}
		}
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if f := container(s); f != nil {
			return f
		}
	}
	return nil
}

// container returns the failure of a container that does not run, or does not keep running, or nil.
func container(s corev1.ContainerStatus) *Failure {
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed":
			return &Failure{Kind: ImagePull, Container: s.Name, Image: s.Image, Cause: pulling(w.Reason + ": " + w.Message)}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			cause, restriction := starting(w.Message)
			kind, name := missing(w.Message)
			return &Failure{Kind: ContainerStart, Container: s.Name, Cause: cause, Restriction: restriction, MissingKind: kind, Missing: name}
		}
	}
	switch {
	case !isFailing(s):
		return nil
	case s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.Reason == "OOMKilled":
		return &Failure{Kind: OutOfMemory, Container: s.Name}
	}
	return &Failure{Kind: CrashLoop, Container: s.Name}
}

// reference matches the kubelet's message about a missing ConfigMap or Secret that a container
// refers to. Its name is from the API server's answer.
var reference = regexp.MustCompile(`^(configmap|secret) "([^"]+)" not found$`)

// kinds of the objects by the words of the kubelet.
var kinds = map[string]string{"configmap": "ConfigMap", "secret": "Secret"}

// missing returns the kind and the name of the object that a message is about, or "".
func missing(message string) (kind, name string) {
	if m := reference.FindStringSubmatch(message); m != nil {
		return kinds[m[1]], m[2]
	}
	return "", ""
}

// isFailing reports whether a container fails again and again, whether it is being restarted or
// waits in Kubernetes' back-off.
func isFailing(s corev1.ContainerStatus) bool {
	if s.Ready || s.RestartCount < manyRestarts {
		return false
	}
	if w := s.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
		return true
	}
	// An init container that has ended well may have failed before, and is no failure.
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
