package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestRemove: an annotation is removed from the version of a ConfigMap that was read, and never
// from a later one.
func TestRemove(t *testing.T) {
	cases := map[string]struct {
		reason, read string
		raced        bool
		want         map[string]any
	}{
		"Same":    {reason: "What was read is what is there.", read: "5", want: map[string]any{"config": "{}"}},
		"Changed": {reason: "The annotation may have been set again, with the same value.", read: "4", raced: true, want: map[string]any{"config": "{}", "initialize": ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			annotations := map[string]any{"config": "{}", "initialize": ""}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				var patch struct {
					Metadata struct {
						ResourceVersion string         `json:"resourceVersion"`
						Annotations     map[string]any `json:"annotations"`
					} `json:"metadata"`
				}
				_ = json.NewDecoder(r.Body).Decode(&patch)
				if v := patch.Metadata.ResourceVersion; v != "" && v != "5" {
					w.WriteHeader(http.StatusConflict)
					_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict})
					return
				}
				for k, v := range patch.Metadata.Annotations {
					if v == nil {
						delete(annotations, k)
					}
				}
				_ = json.NewEncoder(w).Encode(&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}})
			}))
			defer server.Close()
			c, err := New(&rest.Config{Host: server.URL}, "team")
			if err != nil {
				t.Fatal(err)
			}
			err = c.Remove(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "db-config", ResourceVersion: tc.read}}, "initialize")
			if Raced(err) != tc.raced || (err == nil) == tc.raced {
				t.Errorf("%s\nRemove(...): got %v, want raced %t", tc.reason, err, tc.raced)
			}
			if diff := cmp.Diff(tc.want, annotations); diff != "" {
				t.Errorf("%s\nRemove(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
