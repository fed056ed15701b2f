package podfailure

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// manyRestarts is from where on a container keeps failing: one failure is an
// accident, and may have been a test of failover.
const manyRestarts = 2

// Kind of a failure.
type Kind string

// Kinds of failures. Those before ContainerStart may pass by themselves. Why alone returns
// Initializing, for a pod whose init container does not end, Preparing, for one whose volumes are
// not mounted yet, Unready, for a container that does not
// pass a probe, and Stopped, for a pod that its node has ended.
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

// Restriction is what a pod that meets the restricted pod security standard, with a read-only
// root file system, forbids an image.
type Restriction string

// Restrictions that images fail by.
const (
	// NoRoot fails an image that runs as root.
	NoRoot Restriction = "NoRoot"
	// NoNamedUser fails an image whose user is not named by number: it might be root.
	NoNamedUser Restriction = "NoNamedUser"
	// ReadOnly fails an image that writes to its root file system.
	ReadOnly Restriction = "ReadOnly"
)

// Lift says what a claim sets for an image that does not bear the restriction, or "".
func (r Restriction) Lift() string {
	switch r {
	case NoRoot:
		return "set runAsUser to the number of another user, or podSecurity to baseline outside production"
	case NoNamedUser:
		return "set runAsUser to that user's number"
	case ReadOnly:
		return "mount a volume with emptyDir where it writes, or set podSecurity to baseline outside production"
	}
	return ""
}

// Failure is why a pod does not come up.
type Failure struct {
	Kind Kind

	// Container that does not run, but for Unschedulable.
	Container string

	// Image of that container, for ImagePull.
	Image string

	// Cause in the words of who has met it, without those that change, or "".
	Cause string

	// Restriction of the pod that the image does not bear, or "".
	Restriction Restriction

	// Missing is the ConfigMap or Secret that ContainerStart fails for want of, or "".
	Missing string
}

// String follows the name of the pod. It is "" for none.
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
		return "container " + f.Container + " runs and does not pass its " + f.Cause + " probe"
	case Initializing:
		return "init container " + f.Container + " has not ended yet"
	case Stopped:
		return "was stopped" + because(f.Cause)
	case Preparing:
		if f.Cause == "" {
			return "cannot start yet: its volumes or its network are not ready"
		}
		return "cannot start yet: its volumes are not mounted, for which must exist: " + f.Cause
	case CrashLoop:
	}
	return "container " + f.Container + " keeps failing" + because(f.Cause)
}

// Of a pod, or nil. The first container in trouble speaks for all. A pod that is being
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

// container that does not run, or does not keep running.
func container(s corev1.ContainerStatus) *Failure {
	if w := s.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable":
			return &Failure{Kind: ImagePull, Container: s.Name, Image: s.Image, Cause: pulling(w.Message)}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			cause, restriction := starting(w.Message)
			return &Failure{Kind: ContainerStart, Container: s.Name, Cause: cause, Restriction: restriction, Missing: missing(w.Message)}
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

// reference is what the kubelet says of a ConfigMap or Secret that a container refers to and
// that does not exist: it has the name from the API server's answer.
var reference = regexp.MustCompile(`^(?:configmap|secret) "([^"]+)" not found$`)

func missing(message string) string {
	if m := reference.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
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
