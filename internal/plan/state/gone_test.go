package state

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/plan"
)

// TestDryRunGone: a claim that was deleted after it was read is not refused by the API server. What
// it refers to and does not exist is.
func TestDryRunGone(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "apps.example.com", Version: "v1", Kind: "WebApp"}
	cases := map[string]struct {
		reason   string
		answer   *kerrors.StatusError
		rejected bool
	}{
		"Claim":     {reason: "The claim itself is not there any more.", answer: kerrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: "webapps"}, "web")},
		"Namespace": {reason: "Something else is not there.", answer: kerrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team"), rejected: true},
		"SameName":  {reason: "Another object has its name.", answer: kerrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), rejected: true},
		"Forbidden": {reason: "A policy refuses the claim.", answer: kerrors.NewForbidden(schema.GroupResource{Group: kind.Group, Resource: "webapps"}, "web", errors.New("denied request: no")), rejected: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				tc.answer.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(tc.answer.Status().Code))
				_ = json.NewEncoder(w).Encode(tc.answer.Status())
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(kind, meta.RESTScopeNamespace)
			l := &Live{client: client, mapper: mapper, slots: make(chan struct{}, 1)}
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(kind)
			u.SetNamespace("team")
			u.SetName("web")
			err = l.DryRun(t.Context(), "test", u, u)
			rejected := &plan.RejectedError{}
			if got := errors.As(err, &rejected); got != tc.rejected || !tc.rejected && !errors.Is(err, errGone) {
				t.Errorf("%s\nwant rejected %t, got %v", tc.reason, tc.rejected, err)
			}
		})
	}
}
