package health

import (
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/podfailure"
	"github.com/storeplane/storeplane/internal/structs"
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
