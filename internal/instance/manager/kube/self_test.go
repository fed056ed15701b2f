package kube

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// token returns a token as the API server projects it into a pod, with an invalid signature.
func token(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmVk"
}

func TestSelf(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "second"}})
	}))
	defer server.Close()
	cases := map[string]struct {
		reason string
		token  string
		gone   bool
	}{
		"Same":     {reason: "A pod finds itself.", token: token(`{"kubernetes.io":{"pod":{"name":"db-0","uid":"second"}}}`)},
		"Next":     {reason: "The next pod of its name is not it.", token: token(`{"kubernetes.io":{"pod":{"name":"db-0","uid":"first"}}}`), gone: true},
		"Unbound":  {reason: "A token that is no pod's tells nothing.", token: token(`{"kubernetes.io":{"namespace":"team"}}`)},
		"Opaque":   {reason: "Nor does one that cannot be read.", token: "opaque"},
		"Nonsense": {reason: "Nor one with nonsense in it.", token: "e30.%%%.c2lnbmVk"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte(tc.token+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := New(&rest.Config{Host: server.URL, BearerTokenFile: file}, "team")
			if err != nil {
				t.Fatal(err)
			}
			pod, err := c.Self(t.Context(), "db-0")
			if Missing(err) != tc.gone || (err == nil) == tc.gone {
				t.Errorf("%s\nSelf(): want gone %v, got %v, %v", tc.reason, tc.gone, pod, err)
			}
		})
	}
}
