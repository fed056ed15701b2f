package appconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// TestHeld: a Deployment that its claim still holds is no target yet, and one that a user has paused is.
func TestHeld(t *testing.T) {
	type want struct{ Missing, Paused bool }
	cases := map[string]struct {
		reason   string
		by       configv1.RolloutBy
		paused   bool
		replicas int32
		want     want
	}{
		"Held":       {reason: "Its pods wait for a migration.", by: configv1.ByOwner, paused: true, want: want{Missing: true}},
		"HasPods":    {reason: "One with pods is there.", by: configv1.ByOwner, paused: true, replicas: 1, want: want{Paused: true}},
		"Runs":       {reason: "So is one that creates its pods.", by: configv1.ByOwner},
		"ByProvider": {reason: "What no claim has created was paused by a user.", by: configv1.ByProvider, paused: true, want: want{Paused: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			d.Spec.Paused, d.Status.Replicas = tc.paused, tc.replicas
			a := &configv1.AppConfig{}
			a.Spec.ForProvider.Rollout = &configv1.Rollout{By: tc.by}
			got := read(Key{Kind: configv1.Deployment, Name: "web"}, d).target(a)
			if diff := cmp.Diff(tc.want, want{got.Missing, got.Paused}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
