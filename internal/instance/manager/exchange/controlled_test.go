package exchange

import (
	"encoding/base64"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// TestControlled: a server whose pod was replaced keeps the StatefulSet of its own pod.
func TestControlled(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		pod    types.UID
		want   string
	}{
		"Own":      {reason: "Another StatefulSet has adopted it.", pod: "own", want: "second"},
		"Replaced": {reason: "The next pod of its name is of the next StatefulSet.", pod: "next", want: "first"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := base64.RawURLEncoding.EncodeToString([]byte(`{"kubernetes.io":{"pod":{"name":"db-0","uid":"own"}}}`))
			client, err := kube.New(&rest.Config{Host: "https://localhost:1", BearerToken: "e30." + claims + ".c2lnbmVk"}, "team")
			if err != nil {
				t.Fatal(err)
			}
			x := &Exchange{Kube: client, pod: "db-0"}
			x.SetController("first")
			x.Controlled([]*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
				Name: "db-0", UID: c.pod, OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", UID: "second", Controller: new(true)}},
			}}})
			if got := x.ControllerUID(); got != c.want {
				t.Errorf("%s\nControlled(): got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}
