package claims_test

import (
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	xpgate "github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/controller/claims"
	"github.com/storeplane/storeplane/internal/controller/gate"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// startTimeout is how long to wait for the API server on a busy machine.
const startTimeout = 2 * time.Minute

// TestClaims: with the provider's permissions only, claims are reported as soon as their kind is
// installed, which may be after the provider has started.
func TestClaims(t *testing.T) {
	p, admin := planetest.Installed(t, "../../..", false)
	registry := prometheus.NewPedanticRegistry()
	begin(t, p.Config(plane.Provider), admin.Scheme(), telemetry.New(registry).Claims)

	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	planetest.Define(t, admin)
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: web, namespace: shop}, spec: {image: "registry.example.com/web:v1", environment: staging}}`), u); err != nil {
		t.Fatal(err)
	}
	planetest.Eventually(t, startTimeout, "the kind is served", func() error { return admin.Create(t.Context(), u.DeepCopy()) })
	tells := func(text string, names ...string) {
		t.Helper()
		planetest.Eventually(t, startTimeout, "it is reported", func() error { return testutil.GatherAndCompare(registry, strings.NewReader(text), names...) })
	}
	tells(`
# HELP storeplane_claim_info A claim, always 1. Its owner is the claim that composes it, if one does.
# TYPE storeplane_claim_info gauge
storeplane_claim_info{environment="staging",kind="WebApp",name="web",namespace="shop",owner_kind="",owner_name=""} 1
# HELP storeplane_claim_ready Whether the claim's condition Ready is True: 1 or 0.
# TYPE storeplane_claim_ready gauge
storeplane_claim_ready{environment="staging",kind="WebApp",name="web",namespace="shop"} 0
`, "storeplane_claim_info", "storeplane_claim_ready", "storeplane_claim_phase")

	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, u); err != nil {
		t.Fatal(err)
	}
	u.Object["status"] = map[string]any{"phase": "Running", "readyGeneration": u.GetGeneration(), "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": u.GetCreationTimestamp().Add(40 * time.Second).UTC().Format(time.RFC3339),
	}}}
	if err := admin.Status().Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	tells(`
# HELP storeplane_claim_generation_lag By how many generations the claim is ahead of the newest one at which all of it was healthy. 0 once its last change is done.
# TYPE storeplane_claim_generation_lag gauge
storeplane_claim_generation_lag{environment="staging",kind="WebApp",name="web",namespace="shop"} 0
# HELP storeplane_claim_phase The claim's present phase, always 1.
# TYPE storeplane_claim_phase gauge
storeplane_claim_phase{environment="staging",kind="WebApp",name="web",namespace="shop",phase="Running"} 1
# HELP storeplane_claim_ready Whether the claim's condition Ready is True: 1 or 0.
# TYPE storeplane_claim_ready gauge
storeplane_claim_ready{environment="staging",kind="WebApp",name="web",namespace="shop"} 1
# HELP storeplane_claim_ready_duration_seconds How long claims took from when they were filed until they were Ready for the first time.
# TYPE storeplane_claim_ready_duration_seconds histogram
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="1"} 0
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="5"} 0
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="10"} 0
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="30"} 0
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="60"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="120"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="180"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="300"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="600"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="1200"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="1800"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="3600"} 1
storeplane_claim_ready_duration_seconds_bucket{environment="staging",kind="WebApp",le="+Inf"} 1
storeplane_claim_ready_duration_seconds_sum{environment="staging",kind="WebApp"} 40
storeplane_claim_ready_duration_seconds_count{environment="staging",kind="WebApp"} 1
`, "storeplane_claim_generation_lag", "storeplane_claim_phase", "storeplane_claim_ready", "storeplane_claim_ready_duration_seconds")

	if err := admin.Delete(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	tells("", "storeplane_claim_info", "storeplane_claim_ready")
}

// begin starts to watch claims as the provider does.
func begin(t *testing.T, cfg *rest.Config, scheme *runtime.Scheme, into *telemetry.Claims) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache: cache.Options{DefaultTransform: claims.Strip},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := controller.Options{
		Logger: logging.NewNopLogger(), GlobalRateLimiter: ratelimiter.NewGlobal(10), MaxConcurrentReconciles: 1,
		Gate: gate.New(t.Context(), new(xpgate.Gate[schema.GroupVersionKind]), gate.In(mgr.GetRESTMapper()), logging.NewNopLogger()),
	}
	for _, kind := range claims.Kinds {
		o.Gate.Register(func() {
			if err := claims.Watch(t.Context(), mgr.GetCache(), kind, into); err != nil {
				t.Error(err)
			}
		}, kind)
	}
	if err := customresourcesgate.Setup(mgr, o); err != nil {
		t.Fatal(err)
	}
	planetest.Run(t, mgr)
}
