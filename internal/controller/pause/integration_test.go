package pause_test

import (
	"errors"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/controller/pause"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

const namespace = "shop"

// world is an API server with the kinds of claims, and the controllers beside it, which have the
// provider's permissions.
type world struct {
	client.Client

	t *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	p, admin := planetest.Installed(t, "../../..", false)
	planetest.Define(t, admin)
	w := &world{Client: admin, t: t}
	if err := admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	w.begin(p.Config(plane.Provider))
	return w
}

// begin starts the controllers.
func (w *world) begin(cfg *rest.Config) {
	w.t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: w.Scheme(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		w.t.Fatal(err)
	}
	o := controller.Options{Logger: logging.NewNopLogger(), GlobalRateLimiter: ratelimiter.NewGlobal(10), MaxConcurrentReconciles: 1, Features: &feature.Flags{}}
	for _, f := range pause.Families() {
		if err := pause.Setup(mgr, mgr, o, f); err != nil {
			w.t.Fatal(err)
		}
	}
	planetest.Run(w.t, mgr)
}

// create creates an object from YAML, controlled by another one if that is given.
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

// annotate sets the pause annotation as kubectl annotate does, with a merge patch.
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

// state returns the values of an object's two annotations about its pause.
func (w *world) state(o *unstructured.Unstructured) [2]string {
	have := o.DeepCopy()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), have); err != nil {
		return [2]string{err.Error()}
	}
	a := have.GetAnnotations()
	return [2]string{a["crossplane.io/paused"], a[appsv1.PausedWithAnnotation]}
}

// TestPauseReachesAll: on a real API server, with the provider's permissions, the pause of a shop
// reaches its database and the database's Backup. What a user paused before stays paused, and what
// a user exempts is not paused.
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
		// The controllers may run on a busy machine.
		planetest.Eventually(t, 2*time.Minute, when, func() error {
			got := map[string][2]string{}
			for n, o := range objects {
				got[n] = w.state(o)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				return errors.New("-want, +got:\n" + diff)
			}
			return nil
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

	// The object of a claim that is gone can be deleted only when it is no longer paused.
	w.annotate(shop, "true")
	is("it is paused again", map[string][2]string{
		"database": {"true", ofShop}, "backend": {"true", ofShop}, "frontend": {"false", ""}, "config": {"true", ofShop}, "backup": {"true", ofDB}, "other": none,
	})
	// Kubernetes removes the owner reference from what a claim leaves behind before the claim is
	// gone.
	if err := w.Patch(t.Context(), config.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
		t.Fatal(err)
	}
	is("what has no owner goes on", map[string][2]string{
		"database": {"true", ofShop}, "backend": {"true", ofShop}, "frontend": {"false", ""}, "config": none, "backup": {"true", ofDB}, "other": none,
	})
	if err := w.Delete(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	is("the shop is gone", map[string][2]string{
		"database": none, "backend": {"true", ""}, "frontend": {"false", ""}, "config": none, "backup": none, "other": none,
	})
}
