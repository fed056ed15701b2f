package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/upgrade"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/settings"
	"github.com/storeplane/storeplane/internal/waves"
)

// upgradeWorld holds settings with two waves and claims of both, one of which was upgraded by an
// edit.
const upgradeWorld = `
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata: {name: storeplane}
data:
  upgrades:
    waves:
    - {name: canaries, namespaces: {matchLabels: {stage: canary}}, pause: 10m}
---
apiVersion: v1
kind: Namespace
metadata: {name: canary, labels: {stage: canary}}
---
apiVersion: platform.example.com/v1
kind: EcommercePlatform
metadata: {name: store, namespace: canary, uid: store, generation: 1}
status: {release: v1, pendingRelease: v2, phase: Running, readyGeneration: 1, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
---
apiVersion: apps.example.com/v1
kind: DatabaseCluster
metadata: {name: orders, namespace: shop, uid: orders, generation: 1}
status: {release: v1, pendingRelease: v2, phase: Running, readyGeneration: 1, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
---
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: web, namespace: shop, uid: web, generation: 1}
status: {release: v2, phase: Running, readyGeneration: 1, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
`

// lifeOfUpgrade upgrades three claims in two waves.
func lifeOfUpgrade(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Scheme().AddKnownTypeWithName(waves.SettingsKind, &unstructured.Unstructured{})
	own := images.Set{Registry: "registry.example.com/storeplane", Version: "v0.2.0"}
	release := (&settings.Settings{ImageRegistry: own.Registry, Version: own.Version}).Release()
	for text := range strings.SplitSeq(strings.ReplaceAll(upgradeWorld, "v2", release), "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), u); err != nil {
			t.Fatal(err)
		}
		if err := w.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range upgrade.Kinds() {
		w.note(k, "", "list", "watch")
	}
	// The metadata of namespaces is watched.
	w.note(corev1.SchemeGroupVersion.WithKind("Namespace"), "", "list", "watch")
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	r := upgrade.NewReconciler(w.provider, own, telemetry.New(prometheus.NewRegistry()).Upgrades, logging.NewNopLogger())
	r.Now = func() time.Time { return now }
	marked := func(want map[string]string, next time.Duration) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, k := range upgrade.Kinds()[1:] {
			l := &unstructured.UnstructuredList{}
			l.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
			if err := w.List(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			for _, u := range l.Items {
				a := u.GetAnnotations()
				got[u.GetName()] = strings.TrimSpace(a[waves.Annotation] + " " + a[waves.MarkAnnotation] + " " + a[waves.TimeAnnotation])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || result.RequeueAfter != next {
			t.Errorf("at %s: again in %s, want %s; claims: -want, +got:\n%s", now.Format(time.TimeOnly), result.RequeueAfter, next, diff)
		}
	}
	marked(map[string]string{"store": release + " Admitted 2026-03-01T12:00:00Z", "orders": "", "web": ""}, time.Minute)

	store := &unstructured.Unstructured{}
	store.SetGroupVersionKind(upgrade.Kinds()[1])
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "canary", Name: "store"}, store); err != nil {
		t.Fatal(err)
	}
	status := store.Object["status"].(map[string]any)
	status["release"] = release
	delete(status, "pendingRelease")
	if err := w.Update(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	upgraded := release + " Upgraded 2026-03-01T12:01:00Z"
	marked(map[string]string{"store": upgraded, "orders": "", "web": ""}, time.Minute)
	now = now.Add(9*time.Minute + 30*time.Second)
	marked(map[string]string{"store": upgraded, "orders": "", "web": ""}, 30*time.Second)
	now = now.Add(30 * time.Second)
	// The WebApp has the release already, by an edit.
	marked(map[string]string{"store": upgraded, "orders": release + " Admitted 2026-03-01T12:11:00Z", "web": ""}, time.Minute)
	return w
}
