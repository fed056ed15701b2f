package controller_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/controller"
)

func TestReadiness(t *testing.T) {
	all := append(slices.Clone(controller.ConfigKinds), controller.ManagedKinds...)
	cases := map[string]struct {
		reason          string
		synced          bool
		served, started []schema.GroupVersionKind
		err             error
		want            string
	}{
		"Ready":      {reason: "One whose controllers are set up.", synced: true, served: all, started: controller.ManagedKinds},
		"Some":       {reason: "An installation may leave managed resources out.", synced: true, served: all[:len(controller.ConfigKinds)+1], started: controller.ManagedKinds[:1]},
		"NotSynced":  {reason: "What is watched is not known yet.", served: all, want: "cannot serve: the cache is not in sync"},
		"NoConfig":   {reason: "The package is not installed.", synced: true, want: "cannot serve: there is no kind ProviderConfig yet"},
		"NoManaged":  {reason: "Nothing is activated.", synced: true, served: controller.ConfigKinds, want: "cannot serve: none of the managed resources is activated"},
		"NotStarted": {reason: "One that would do nothing as the leader.", synced: true, served: all, started: controller.ManagedKinds[:1], want: "cannot serve: the controller of Restore is not started yet"},
		"Error":      {reason: "An API server that does not answer.", synced: true, err: errors.New("no route"), want: "no route"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := controller.Readiness{
				Synced:  func(context.Context) bool { return tc.synced },
				Served:  func(k schema.GroupVersionKind) (bool, error) { return slices.Contains(tc.served, k), tc.err },
				Started: func(k schema.GroupVersionKind) bool { return slices.Contains(tc.started, k) },
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := r.Check(req); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
