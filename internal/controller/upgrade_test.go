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
	"github.com/storeplane/storeplane/internal/waves"
)

// settings with two waves, and claims of both, of which one has been upgraded by an edit.
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
metadata: {name: store, namespace: canary, uid: store}
status: {release: v1, pendingRelease: v2, phase: Running, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
---
apiVersion: apps.example.com/v1
kind: DatabaseCluster
metadata: {name: orders, namespace: shop, uid: orders}
status: {release: v1, pendingRelease: v2, phase: Running, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
---
apiVersion: apps.example.com/v1
kind: WebApp
metadata: {name: web, namespace: shop, uid: web}
status: {release: v2, phase: Running, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-03-01T10:00:00Z"}]}
`

// lifeOfUpgrade of three claims in two waves.
func lifeOfUpgrade(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.Scheme().AddKnownTypeWithName(waves.SettingsKind, &unstructured.Unstructured{})
	for _, text := range strings.Split(upgradeWorld, "\n---\n") {
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
	// Their metadata is watched.
	w.note(corev1.SchemeGroupVersion.WithKind("Namespace"), "", "list", "watch")
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	r := upgrade.NewReconciler(w.provider, telemetry.New(prometheus.NewRegistry()).Upgrades, logging.NewNopLogger())
	r.Now = func() time.Time { return now }
	admitted := func(want map[string]string, next time.Duration) {
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
				got[u.GetName()] = u.GetAnnotations()[waves.Annotation] + " " + u.GetAnnotations()[waves.BeganAnnotation]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || result.RequeueAfter != next {
			t.Errorf("at %s: again in %s, want %s; claims: -want, +got:\n%s", now.Format(time.TimeOnly), result.RequeueAfter, next, diff)
		}
	}
	admitted(map[string]string{"store": "v2 2026-03-01T12:00:00Z", "orders": " ", "web": " "}, 0)

	store := &unstructured.Unstructured{}
	store.SetGroupVersionKind(upgrade.Kinds()[1])
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "canary", Name: "store"}, store); err != nil {
		t.Fatal(err)
	}
	status := store.Object["status"].(map[string]any)
	status["release"] = "v2"
	delete(status, "pendingRelease")
	if err := w.Update(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	admitted(map[string]string{"store": "v2 2026-03-01T12:00:00Z", "orders": " ", "web": " "}, 9*time.Minute)
	now = now.Add(9 * time.Minute)
	admitted(map[string]string{"store": "v2 2026-03-01T12:00:00Z", "orders": "v2 2026-03-01T12:10:00Z", "web": "v2 2026-03-01T12:10:00Z"}, 0)
	return w
}
