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

// TroubleOf pods says in words why the first one of them, by name, does not come
// up, or "". A pod that cannot be read says nothing.
func TroubleOf(pods []*structpb.Struct) string {
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

// Wait is what keeps pods from becoming ready.
type Wait struct {
	// Message that names the pod and the reason, or "".
	Message string

	// Lasting tells that it does not pass by itself, as far as one can tell.
	Lasting bool
}

// passing ranks failures: what does not pass by itself comes first, and a pod that its node has
// ended, which its ReplicaSet leaves behind, last.
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

// Waiting is the message that names the first of some pods, by what does not pass by itself and
// then by name, that is not ready at a moment, and the reason, or "". What may pass by itself counts too, since the message is about
// a rollout that waits for the pods. The last line of a container's log is in it, without what
// looks like a secret.
func Waiting(pods []*structpb.Struct, now time.Time) Wait {
	var name, words string
	rank := 0
	for _, s := range pods {
		var read struct {
			Metadata struct {
				Name              string       `json:"name"`
				DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
			} `json:"metadata"`
			Spec struct {
				Volumes        []corev1.Volume    `json:"volumes"`
				InitContainers []corev1.Container `json:"initContainers"`
			} `json:"spec"`
			Status corev1.PodStatus `json:"status"`
		}
		if err := structs.Decode(s, &read); err != nil {
			continue
		}
		pod := podfailure.Pod{PodStatus: read.Status, Deleting: read.Metadata.DeletionTimestamp != nil, Mounts: podfailure.Mounts(read.Spec.Volumes), Sidecars: podfailure.Sidecars(read.Spec.InitContainers)}
		f := podfailure.Why(pod, now)
		if f == nil || words != "" && cmp.Or(cmp.Compare(rank, passing(f.Kind)), cmp.Compare(name, read.Metadata.Name)) <= 0 {
			continue
		}
		f.Cause = text.Clip(appconfig.LastWords(f.Cause, nil), 256)
		name, words = read.Metadata.Name, f.String()
		if lift := f.Restriction.Lift(); lift != "" {
			words += ": " + lift
		}
		rank = passing(f.Kind)
	}
	if words == "" {
		return Wait{}
	}
	return Wait{Message: name + ": " + words, Lasting: rank == 0}
}

// podFrom reads what trouble is told by: the rest of a pod is long.
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
