package health

import (
	"cmp"
	"slices"
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

// lift says what a claim sets for an image that does not bear a restriction of its pods.
var lift = map[podfailure.Restriction]string{
	podfailure.NoRoot:      ": set runAsUser to the number of another user, or podSecurity to baseline outside production",
	podfailure.NoNamedUser: ": set runAsUser to that user's number",
	podfailure.ReadOnly:    ": mount a volume with emptyDir where it writes, or set podSecurity to baseline outside production",
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
	case podfailure.Preparing, podfailure.Unready:
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
				Volumes []corev1.Volume `json:"volumes"`
			} `json:"spec"`
			Status corev1.PodStatus `json:"status"`
		}
		if err := structs.Decode(s, &read); err != nil {
			continue
		}
		pod := podfailure.Pod{PodStatus: read.Status, Deleting: read.Metadata.DeletionTimestamp != nil, Mounts: mounts(read.Spec.Volumes)}
		f := podfailure.Why(pod, now)
		if f == nil || words != "" && cmp.Or(cmp.Compare(rank, passing(f.Kind)), cmp.Compare(name, read.Metadata.Name)) <= 0 {
			continue
		}
		f.Cause = text.Clip(appconfig.LastWords(f.Cause, nil), 256)
		name, words = read.Metadata.Name, f.String()+lift[f.Restriction]
		rank = passing(f.Kind)
	}
	if words == "" {
		return Wait{}
	}
	return Wait{Message: name + ": " + words, Lasting: rank == 0}
}

// mounts are the ConfigMaps and Secrets without which volumes are not mounted.
func mounts(volumes []corev1.Volume) []string {
	var out []string
	add := func(kind, name string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			out = append(out, kind+" "+name)
		}
	}
	for _, v := range volumes {
		if m := v.ConfigMap; m != nil {
			add("ConfigMap", m.Name, m.Optional)
		}
		if s := v.Secret; s != nil {
			add("Secret", s.SecretName, s.Optional)
		}
		if v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if p.ConfigMap != nil {
				add("ConfigMap", p.ConfigMap.Name, p.ConfigMap.Optional)
			}
			if p.Secret != nil {
				add("Secret", p.Secret.Name, p.Secret.Optional)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
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
