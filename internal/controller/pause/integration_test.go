package pause_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/apis"
	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/controller/pause"
	"github.com/storeplane/storeplane/internal/xrd"
	"github.com/storeplane/storeplane/test/bench/appconfig/plane"
)

const namespace = "shop"

// world is an API server with the claims' kinds, and the controllers beside it,
// who have the provider's rights.
type world struct {
	client.Client

	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("It starts a control plane.")
	}
	p, err := plane.Start(t.Context(), t.TempDir(), false)
	if errors.Is(err, plane.ErrNoBinaries) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(p.Config(plane.Admin), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Install(t.Context(), admin, "../../.."); err != nil {
		t.Fatal(err)
	}
	w := &world{Client: admin, t: t}
	w.define()
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	w.begin(p.Config(plane.Provider), scheme)
	return w
}

// define the claims' kinds as Crossplane does.
func (w *world) define() {
	w.t.Helper()
	files, err := fs.Glob(apis.Definitions, "*/definition.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range files {
		b, err := fs.ReadFile(apis.Definitions, f)
		if err != nil {
			w.t.Fatal(err)
		}
		d, err := xrd.Parse(b)
		if err != nil {
			w.t.Fatal(err)
		}
		crd, err := xrd.CRD(d)
		if err != nil {
			w.t.Fatal(err)
		}
		crd.OwnerReferences = nil
		if err := w.Create(w.t.Context(), crd); err != nil {
			w.t.Fatal(err)
		}
		w.eventually(crd.Name+" is served", func(ctx context.Context) bool {
			if err := w.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
				return false
			}
			for _, c := range crd.Status.Conditions {
				if c.Type == extv1.Established && c.Status == extv1.ConditionTrue {
					return true
				}
			}
			return false
		})
	}
}

// begin the controllers.
func (w *world) begin(cfg *rest.Config, scheme *runtime.Scheme) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		w.t.Fatal(err)
	}
	o := controller.Options{Logger: logging.NewNopLogger(), GlobalRateLimiter: ratelimiter.NewGlobal(10), MaxConcurrentReconciles: 1, Features: &feature.Flags{}}
	for _, f := range pause.Families() {
		if err := pause.Setup(mgr, mgr, o, f); err != nil {
			w.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the manager: %v", err)
		}
	})
}

// patience with the controllers on a machine that has other work.
const patience = 2 * time.Minute

func (w *world) eventually(what string, is func(context.Context) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !is(ctx) {
		select {
		case <-ctx.Done():
			w.t.Fatalf("waited in vain until %s", what)
		case <-tick.C:
		}
	}
}

// create an object of YAML, composed by another one if there is one.
func (w *world) create(text string, by *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), u); err != nil {
		w.t.Fatal(err)
	}
	u.SetNamespace(namespace)
	if by != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(by, by.GroupVersionKind())})
	}
	if err := w.Create(w.t.Context(), u); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// annotate by hand: with kubectl's own way, a merge patch.
func (w *world) annotate(o *unstructured.Unstructured, value string) {
	w.t.Helper()
	text := "null"
	if value != "" {
		text = `"` + value + `"`
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"crossplane.io/paused":`+text+`}}}`))
	if err := w.Patch(w.t.Context(), o.DeepCopy(), patch, client.FieldOwner("kubectl-annotate")); err != nil {
		w.t.Fatal(err)
	}
}

// state is what an object says of its pause.
func (w *world) state(ctx context.Context, o *unstructured.Unstructured) [2]string {
	have := o.DeepCopy()
	if err := w.Get(ctx, client.ObjectKeyFromObject(o), have); err != nil {
		return [2]string{err.Error()}
	}
	a := have.GetAnnotations()
	return [2]string{a["crossplane.io/paused"], a[appsv1.PausedWithAnnotation]}
}

// TestPauseReachesAll: on a real API server, with the provider's own rights. A
// shop's pause reaches the database and the database's Backup; what a person
// paused before stays paused, and what a person exempts goes on.
func TestPauseReachesAll(t *testing.T) {
	w := newWorld(t)
	const (
		shopYAML   = "{apiVersion: platform.example.com/v1, kind: EcommercePlatform, metadata: {name: store}, spec: {frontend: {image: 'f:1'}, backend: {image: 'b:1'}}}"
		dbYAML     = "{apiVersion: apps.example.com/v1, kind: DatabaseCluster, metadata: {name: store-database}, spec: {size: 1, version: '17'}}"
		backYAML   = "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: store-backend}, spec: {image: 'b:1'}}"
		frontYAML  = "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: store-frontend}, spec: {image: 'f:1'}}"
		otherYAML  = "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: other}, spec: {image: 'o:1'}}"
		configYAML = "{apiVersion: config.example.com/v1, kind: AppConfig, metadata: {name: store-config}, spec: {forProvider: {application: store, config: {A: '1'}, targets: [{kind: Deployment, name: store-backend-web}]}}}"
		backupYAML = "{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: store-database}, spec: {forProvider: {source: {type: postgresql, connection: {databaseClusterRef: {name: store-database}}}, destination: {type: volume, bucket: b}, method: physical}}}"
	)
	shop := w.create(shopYAML, nil)
	db, backend, frontend := w.create(dbYAML, shop), w.create(backYAML, shop), w.create(frontYAML, shop)
	config, backup := w.create(configYAML, shop), w.create(backupYAML, db)
	other := w.create(otherYAML, nil)
	objects := map[string]*unstructured.Unstructured{"database": db, "backend": backend, "frontend": frontend, "config": config, "backup": backup, "other": other}
	is := func(when string, want map[string][2]string) {
		t.Helper()
		got := map[string][2]string{}
		defer func() {
			if t.Failed() {
				t.Logf("%s: -want, +got:\n%s", when, cmp.Diff(want, got))
			}
		}()
		w.eventually(when, func(ctx context.Context) bool {
			for n, o := range objects {
				got[n] = w.state(ctx, o)
			}
			return cmp.Equal(want, got)
		})
	}
	const ofShop, ofDB = "EcommercePlatform store", "DatabaseCluster store-database"
	none := [2]string{}

	w.annotate(backend, "true")
	w.annotate(shop, "true")
	is("all of the shop is paused", map[string][2]string{
		"database": {"true", ofShop}, "backend": {"true", ofShop}, "frontend": {"true", ofShop}, "config": {"true", ofShop}, "backup": {"true", ofDB}, "other": none,
	})
	w.annotate(frontend, "false")
	w.annotate(db, "")
	is("a person's no holds, and what was only taken away comes back", map[string][2]string{
		"database": {"true", ofShop}, "backend": {"true", ofShop}, "frontend": {"false", ofShop}, "config": {"true", ofShop}, "backup": {"true", ofDB}, "other": none,
	})
	w.annotate(shop, "")
	is("the shop goes on, as people left it", map[string][2]string{
		"database": none, "backend": {"true", ""}, "frontend": {"false", ""}, "config": none, "backup": none, "other": none,
	})

	// A claim that is gone left something behind: without its pause it can be
	// deleted.
	w.annotate(shop, "true")
	is("it is paused again", map[string][2]string{
		"database": {"true", ofShop}, "backend": {"true", ofShop}, "frontend": {"false", ""}, "config": {"true", ofShop}, "backup": {"true", ofDB}, "other": none,
	})
	if err := w.Delete(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	is("the shop is gone", map[string][2]string{
		"database": none, "backend": {"true", ""}, "frontend": {"false", ""}, "config": none, "backup": none, "other": none,
	})
}
