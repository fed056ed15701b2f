package databasecluster_test

import (
	"testing"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestPlacement: all pods of a database run where the claim places them, and have its labels in
// addition to their own, which take precedence.
func TestPlacement(t *testing.T) {
	c := simulate(t, `{size: 3, version: '17', environment: staging, nodeSelector: {disk: fast}, tolerations: [{key: databases, operator: Exists}],
  priorityClassName: high, podLabels: {team: shop}, podAnnotations: {example.com/cost: '7'}, backup: {enabled: true},
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}}`)
	c.Settle()
	pods := functionstest.Pods(t, c.Observed)
	if len(pods) < 3 {
		t.Fatalf("want servers, a repository and backups: got %d kinds of pods", len(pods))
	}
	for _, p := range pods {
		if p.Spec.NodeSelector["disk"] != "fast" || len(p.Spec.Tolerations) != 1 || p.Spec.PriorityClassName != "high" || p.Labels["team"] != "shop" || p.Annotations["example.com/cost"] != "7" {
			t.Errorf("%s runs where and as the claim says: got %v, labels %v, annotations %v", p.Component, p.Spec, p.Labels, p.Annotations)
		}
		if a := p.Spec.Affinity; a == nil || a.NodeAffinity == nil {
			t.Errorf("%s runs on the nodes that the claim wants: got %v", p.Component, a)
		}
		if p.Labels["app.kubernetes.io/instance"] != "orders" {
			t.Errorf("%s keeps its own labels: got %v", p.Component, p.Labels)
		}
	}
	spread := servers(t, c).Spec.Template.Spec.Affinity.PodAntiAffinity
	if len(spread.RequiredDuringSchedulingIgnoredDuringExecution) != 1 || len(spread.PreferredDuringSchedulingIgnoredDuringExecution) != 0 {
		t.Errorf("the claim's anti-affinity takes the place of the default: got %v", spread)
	}
}

// TestPlacementRefused: labels that pods cannot have are refused before any object is created.
func TestPlacementRefused(t *testing.T) {
	c := simulate(t, "{size: 1, version: '17', podLabels: {app.kubernetes.io/instance: other}}")
	c.Reconcile()
	const want = "podLabels: app.kubernetes.io/instance is not for claims to set: choose another key"
	if got := c.Message(); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	if len(c.Observed) > 0 {
		t.Errorf("want nothing made, got %d objects", len(c.Observed))
	}
}
