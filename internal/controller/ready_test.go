package controller_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
		"NotSynced":  {reason: "What is watched is not known yet.", served: all, started: controller.ManagedKinds, want: "cannot serve: the cache is not in sync"},
		"NoConfig":   {reason: "The package is not installed.", synced: true, want: "cannot serve: there is no kind ProviderConfig yet"},
		"NoManaged":  {reason: "Nothing is activated.", synced: true, served: controller.ConfigKinds, want: "cannot serve: none of the managed resources is activated"},
		"NotYet":     {reason: "Nothing is watched yet, so that all of it is in sync.", synced: true, served: all, want: "cannot serve: the controller of Backup is not started yet"},
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

// TestAwait: a replica is waited for until it is ready, and not for ever.
func TestAwait(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		synced func(check int) bool
		want   time.Duration
	}{
		"Ready": {reason: "It need not wait.", synced: func(int) bool { return true }},
		"Late":  {reason: "It is ready after two checks.", synced: func(n int) bool { return n > 2 }, want: time.Second},
		"Never": {reason: "A replica that cannot read something leads all the same.", synced: func(int) bool { return false }, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				checks := 0
				r := controller.Readiness{
					Synced:  func(context.Context) bool { checks++; return tc.synced(checks) },
					Served:  func(schema.GroupVersionKind) (bool, error) { return true, nil },
					Started: func(schema.GroupVersionKind) bool { return true },
				}
				began := time.Now()
				r.Await(t.Context(), time.Minute)
				if took := time.Since(began); took != tc.want {
					t.Errorf("%s\nAwait(): got %s, want %s", tc.reason, took, tc.want)
				}
			})
		})
	}
}
