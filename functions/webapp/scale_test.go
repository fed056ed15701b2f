package webapp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestScale: the scale subresource reads and sets the replicas of the claim, and reads the selector
// by which an autoscaler finds the metrics of its pods.
func TestScale(t *testing.T) {
	c := simulate(t, "{image: 'r.example.com/shop:1', replicas: 1}")
	c.Settle()
	c.Edit(3.0, "replicas")
	c.Settle()
	if got := *functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Spec.Replicas; got != 3 {
		t.Errorf("want 3 replicas, as the claim was scaled to, got %d", got)
	}
	got := map[string]any{}
	for _, f := range []string{"replicas", "selector", "availableReplicas"} {
		got[f] = functionstest.Get(c.Claim, "status", f).AsInterface()
	}
	want := map[string]any{"replicas": 3.0, "availableReplicas": 3.0, "selector": "app.kubernetes.io/component=web,app.kubernetes.io/instance=hello"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
