package claims

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/controller/telemetry"
)

// backend is the backend of a shop as the API server returns it.
const backend = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata:
  name: store-backend
  namespace: shop
  uid: backend
  generation: 3
  creationTimestamp: "2026-03-01T12:00:00Z"
  annotations:
    crossplane.io/paused: "true"
    kubectl.kubernetes.io/last-applied-configuration: long
  managedFields: [{manager: kubectl}]
  ownerReferences:
    - {apiVersion: platform.example.com/v1, kind: EcommercePlatform, name: store, uid: store, controller: true}
spec:
  environment: production
  image: registry.example.com/backend:v1
  env: [{name: A, value: secret}]
status:
  phase: Deploying
  readyGeneration: 2
  message: Waiting for backend
  components: [{name: backend, ready: false}]
  conditions:
    - {type: Synced, status: "True", reason: ReconcileSuccess, lastTransitionTime: "2026-03-01T12:00:01Z"}
    - {type: Ready, status: "False", reason: Creating, lastTransitionTime: "2026-03-01T12:30:00Z"}
    - {type: Accepted, status: "False", reason: Invalid, message: no, lastTransitionTime: "2026-03-01T12:30:00Z"}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRead(t *testing.T) {
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		text   string
		want   telemetry.Claim
	}{
		"Nested": {
			reason: "All there is to know.",
			text:   backend,
			want: telemetry.Claim{
				Kind: "WebApp", Namespace: "shop", Name: "store-backend", UID: "backend", Environment: "production",
				OwnerKind: "EcommercePlatform", OwnerName: "store", Phase: "Deploying", Since: noon.Add(30 * time.Minute), Refused: true, Created: noon,
				Generation: 3, ReadyGeneration: 2,
			},
		},
		"New": {
			reason: "A claim that no controller has observed has no status.",
			text:   `{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: a, namespace: b, generation: 1, creationTimestamp: "2026-03-01T12:00:00Z"}, spec: {image: i}}`,
			want:   telemetry.Claim{Kind: "WebApp", Namespace: "b", Name: "a", Created: noon, Generation: 1},
		},
		"Odd": {
			reason: "What is not as it should be is not known.",
			text:   `{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: a, namespace: b, creationTimestamp: "2026-03-01T12:00:00Z"}, spec: {environment: 1}, status: {phase: [], readyGeneration: x, conditions: {}}}`,
			want:   telemetry.Claim{Kind: "WebApp", Namespace: "b", Name: "a", Created: noon},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, tc.text)
			got := read(u)
			got.Created = got.Created.UTC()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			stripped, err := Strip(u)
			if err != nil {
				t.Fatal(err)
			}
			again := read(stripped.(*unstructured.Unstructured))
			again.Created = again.Created.UTC()
			if diff := cmp.Diff(tc.want, again); diff != "" {
				t.Errorf("what is read must not be stripped\n-want, +got:\n%s", diff)
			}
		})
	}
}

func TestStrip(t *testing.T) {
	want := object(t, `
apiVersion: apps.example.com/v1
kind: WebApp
metadata:
  name: store-backend
  namespace: shop
  uid: backend
  generation: 3
  creationTimestamp: "2026-03-01T12:00:00Z"
  annotations: {crossplane.io/paused: "true"}
  ownerReferences:
    - {apiVersion: platform.example.com/v1, kind: EcommercePlatform, name: store, uid: store, controller: true}
spec: {environment: production}
status:
  phase: Deploying
  readyGeneration: 2
  conditions:
    - {type: Ready, status: "False", reason: Creating, lastTransitionTime: "2026-03-01T12:30:00Z"}
    - {type: Accepted, status: "False", reason: Invalid, message: no, lastTransitionTime: "2026-03-01T12:30:00Z"}
`)
	got := any(object(t, backend))
	for range 2 {
		var err error
		if got, err = Strip(got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("nothing is kept that is not read\n-want, +got:\n%s", diff)
		}
	}

	other := object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, managedFields: [{manager: kubectl}]}, data: {a: b}}`)
	stripped, err := Strip(other)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}`), stripped); diff != "" {
		t.Errorf("other kinds keep all but who manages their fields\n-want, +got:\n%s", diff)
	}
}

// TestStripApplied: the annotation with the last applied configuration is removed from objects of
// which only metadata is kept, and stays on objects that may be written back as a whole.
func TestStripApplied(t *testing.T) {
	m := metav1.ObjectMeta{
		Name: "store", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations: map[string]string{"a": "b", corev1.LastAppliedConfigAnnotation: "{}"},
	}
	for name, tc := range map[string]struct {
		object client.Object
		want   map[string]string
	}{
		"Metadata": {object: &metav1.PartialObjectMetadata{ObjectMeta: *m.DeepCopy()}, want: map[string]string{"a": "b"}},
		"Whole":    {object: &corev1.ConfigMap{ObjectMeta: *m.DeepCopy()}, want: m.Annotations},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Strip(tc.object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.object.GetAnnotations()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if got := tc.object.GetManagedFields(); got != nil {
				t.Errorf("no controller reads which manager owns which field: got %v", got)
			}
		})
	}
}

type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

// informer is a cache that keeps the event handler, so that a test can call it.
type informer struct {
	cache.Informer

	handler toolscache.ResourceEventHandler
}

func (i *informer) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if o.GetObjectKind().GroupVersionKind() != Kinds[2] {
		return nil, context.Canceled
	}
	return i, nil
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return registration{}, nil
}

func TestWatch(t *testing.T) {
	seen, from := telemetry.New(prometheus.NewRegistry()).Claims, &informer{}
	if err := Watch(t.Context(), from, Kinds[2], seen); err != nil {
		t.Fatal(err)
	}
	series := func(want int, reason string) {
		t.Helper()
		if got := testutil.CollectAndCount(seen, "storeplane_claim_info"); got != want {
			t.Errorf("%s: want %d claims, got %d", reason, want, got)
		}
	}
	u := object(t, backend)
	series(0, "Nothing was told")
	from.handler.OnAdd(u, true)
	series(1, "A claim that is there")
	from.handler.OnUpdate(u, u)
	series(1, "A claim that changes")
	from.handler.OnDelete(u)
	series(0, "A claim that goes")
	from.handler.OnAdd(u, false)
	from.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop/store-backend", Obj: u})
	series(0, "A claim whose end was missed")

	if err := Watch(t.Context(), from, schema.GroupVersionKind{Kind: "Other"}, seen); err == nil {
		t.Error("what cannot be watched must be told")
	}
}
