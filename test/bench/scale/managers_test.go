package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestReported: what instance managers write is written where they run, once, and nothing that is read is changed.
func TestReported(t *testing.T) {
	desired, err := json.Marshal(instance.Desired{Claim: "db", Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	set := func(name string, ready int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "StatefulSet", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"replicas": int64(1),
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{instance.ScopeLabel: name}}},
			},
			"status": map[string]any{"readyReplicas": ready},
		}}
	}
	config := func(name string, data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data}}
	}
	objects := []*unstructured.Unstructured{
		set("a", 1), config("a", map[string]any{instance.DesiredKey: string(desired)}), config(instance.StatusName("a"), map[string]any{}),
		set("b", 0), config("b", map[string]any{instance.DesiredKey: string(desired)}), config(instance.StatusName("b"), map[string]any{}),
		config("other", map[string]any{"key": "value"}),
	}
	var before []*unstructured.Unstructured
	for _, u := range objects {
		before = append(before, u.DeepCopy())
	}
	got := reported(objects)
	if len(got) != 1 || got["a-status"][instance.ClusterKey] == "" {
		t.Errorf("reported(): want the reports of a alone, got %v", got)
	}
	if diff := cmp.Diff(before, objects); diff != "" {
		t.Errorf("reported() has changed what it was given: -before, +after:\n%s", diff)
	}
	written := map[string]any{}
	for k, v := range got["a-status"] {
		written[k] = v
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetName() == "a-status" })
	objects[i] = config("a-status", written)
	if again := reported(objects); len(again) > 0 {
		t.Errorf("reported() of what is written: %v", again)
	}
}
