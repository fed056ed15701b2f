package converge

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/health"
)

// TestHeal: the status that Heal sets on an object is one that package health calls healthy.
func TestHeal(t *testing.T) {
	cases := map[string]struct {
		reason string
		object map[string]any
	}{
		"Deployment":              {reason: "All pods of the newest generation are available.", object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(3)}}},
		"DefaultReplicas":         {reason: "Without a number of replicas there is one.", object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{}}},
		"StatefulSet":             {reason: "All pods are ready and of one revision.", object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": map[string]any{"replicas": int64(3)}}},
		"NoReplicas":              {reason: "A StatefulSet that is scaled to nothing is healthy too.", object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": map[string]any{"replicas": int64(0)}}},
		"Job":                     {reason: "A Job has completed.", object: map[string]any{"apiVersion": "batch/v1", "kind": "Job"}},
		"PersistentVolumeClaim":   {reason: "A volume claim is bound.", object: map[string]any{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}},
		"PodDisruptionBudget":     {reason: "A budget is met.", object: map[string]any{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}},
		"HorizontalPodAutoscaler": {reason: "An autoscaler has its metrics.", object: map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}},
		"Ingress":                 {reason: "An Ingress has an address.", object: map[string]any{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}},
		"ManagedResource":         {reason: "A managed resource is Ready.", object: map[string]any{"apiVersion": "backup.example.com/v1", "kind": "Backup"}},
		"AppConfig": {
			reason: "An AppConfig is Ready when its targets run its bundle.",
			object: map[string]any{"apiVersion": "config.example.com/v1", "kind": "AppConfig", "spec": map[string]any{"forProvider": map[string]any{"application": "thing", "config": map[string]any{"A": "b"}}}},
		},
		"ConfigMap": {reason: "A ConfigMap has no status at all.", object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: tc.object}
			u.SetName("thing")
			u.SetGeneration(2)
			Heal(u)
			s, err := toStruct(u)
			if err != nil {
				t.Fatal(err)
			}
			if got := health.Of(s); !got.IsHealthy() {
				t.Errorf("\n%s\nheal(...): the kernel says: %s", tc.reason, got.Message)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	live := map[string]any{"a": "1", "b": "2", "own": "x", "deep": map[string]any{"a": "1", "own": "y"}}
	before := map[string]any{"a": "1", "b": "2", "deep": map[string]any{"a": "1"}}
	now := map[string]any{"a": "3", "c": []any{"4"}, "deep": map[string]any{}}
	got := merge(live, before, now)
	for path, want := range map[string]any{"a": "3", "own": "x"} {
		if got[path] != want {
			t.Errorf("What is applied replaces, what the cluster added stays: %s is %v, not %v", path, got[path], want)
		}
	}
	if _, ok := got["b"]; ok {
		t.Errorf("What is no longer applied goes: %v", got)
	}
	deep, _ := got["deep"].(map[string]any)
	if len(deep) != 1 || deep["own"] != "y" {
		t.Errorf("The same holds below the root: %v", deep)
	}
}
