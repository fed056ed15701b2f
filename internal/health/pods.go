package health

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/podfailure"
	"github.com/storeplane/storeplane/internal/structs"
	"github.com/storeplane/storeplane/internal/text"
)

// FailureOf returns a message about the first pod, by name, that does not start, or "". A pod that
// cannot be read is ignored.
func FailureOf(pods []*structpb.Struct) string {
	var name, words string
	for _, s := range pods {
		pod, ok := podFrom(s)
		if !ok || words != "" && pod.Name >= name {
			continue
		}
		if f := podfailure.Of(pod); f != nil {
			name, words = pod.Name, f.String()
		}
	}
	if words == "" {
		return ""
	}
	return name + ": " + words
}

// Wait describes what keeps pods from becoming ready.
type Wait struct {
	// Message names the pod and the reason, or is "".
	Message string

	// Lasting is true if that does not pass by itself, as far as is known, or has lasted for
	// LastsAfter.
	Lasting bool

	// Due is how soon a pod that starts counts as failed if nothing changes, or 0 if none does. It is set without
	// a Message only.
	Due time.Duration
}

// LastsAfter is how long a pod may have been unready for a reason that may pass by itself until
// that counts as lasting: for example a probe that asks for a port at which nothing listens.
const LastsAfter = 30 * time.Second

// isLasting reports whether a pod's failure counts as lasting.
func isLasting(pod *corev1.Pod, f *podfailure.Failure, now time.Time) bool {
	switch passing(f.Kind) {
	case 0:
		return true
	case 1:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse {
				return now.Sub(c.LastTransitionTime.Time) >= LastsAfter
			}
		}
	}
	return false
}

// passing ranks failures: first those that do not pass by themselves, then those that may, and last
// a pod that its node has ended, which its ReplicaSet leaves behind.
func passing(k podfailure.Kind) int {
	switch k {
	case podfailure.Stopped:
		return 2
	case podfailure.Preparing, podfailure.Unready, podfailure.Initializing:
		return 1
	default:
		return 0
	}
}

// Waiting returns which pod is not ready at a time, and the reason. Of several pods it is the first
// one by passing and then by name. Failures that may pass by themselves count too, since the
// message is about a rollout that waits for the pods. It contains the last line of a container's
// log, without what looks like a secret.
//
// lift returns what to set in the claim because of a failure, or "". It may be nil.
func Waiting(pods []*structpb.Struct, now time.Time, lift func(*podfailure.Failure) string) Wait {
	var name, words string
	var due time.Duration
	rank, lasting := 0, false
	for _, s := range pods {
		var read struct {
			Metadata struct {
				Name              string       `json:"name"`
				DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
			} `json:"metadata"`
			Spec struct {
				Volumes        []corev1.Volume    `json:"volumes"`
				InitContainers []corev1.Container `json:"initContainers"`
				Containers     []corev1.Container `json:"containers"`
			} `json:"spec"`
			Status corev1.PodStatus `json:"status"`
		}
		if err := structs.Decode(s, &read); err != nil {
			continue
		}
		pod := &corev1.Pod{Status: read.Status, Spec: corev1.PodSpec{Volumes: read.Spec.Volumes, InitContainers: read.Spec.InitContainers, Containers: read.Spec.Containers}}
		pod.DeletionTimestamp = read.Metadata.DeletionTimestamp
		if d := podfailure.Due(pod, now); d > 0 && (due == 0 || d < due) {
			due = d
		}
		f := podfailure.Why(pod, now)
		if f == nil || words != "" && cmp.Or(cmp.Compare(rank, passing(f.Kind)), cmp.Compare(name, read.Metadata.Name)) <= 0 {
			continue
		}
		f.Cause = text.Clip(appconfig.LastWords(f.Cause, nil), 256)
		name, words = read.Metadata.Name, f.String()
		if lift != nil {
			if set := lift(f); set != "" {
				words += ": " + set
			}
		}
		rank, lasting = passing(f.Kind), isLasting(pod, f, now)
	}
	if words == "" {
		return Wait{Due: due}
	}
	return Wait{Message: name + ": " + words, Lasting: lasting}
}

// podFrom reads the fields of a pod that show why it fails: the whole pod is long.
func podFrom(s *structpb.Struct) (*corev1.Pod, bool) {
	var read struct {
		Metadata struct {
			Name              string       `json:"name"`
			DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
		} `json:"metadata"`
		Status corev1.PodStatus `json:"status"`
	}
	if err := structs.Decode(s, &read); err != nil {
		return nil, false
	}
	pod := &corev1.Pod{Status: read.Status}
	pod.Name, pod.DeletionTimestamp = read.Metadata.Name, read.Metadata.DeletionTimestamp
	return pod, true
}
