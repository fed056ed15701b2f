package controller_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// granted is what Crossplane grants to each provider besides its own kinds.
var granted = []string{"/secrets", "/configmaps", "/events", "coordination.k8s.io/leases"}

// TestClusterRole: the ClusterRole grants the provider exactly what it needs. The test runs its
// reconcilers and compares the recorded requests with the role.
func TestClusterRole(t *testing.T) {
	got := map[string][]string{}
	collect := func(w *world) {
		for k, v := range w.verbs() {
			got[k] = slices.Compact(slices.Sorted(slices.Values(append(got[k], v...))))
		}
	}
	collect(lifeOfBackup(t))
	collect(lifeOfRestore(t))
	collect(lifeOfPhysical(t))
	collect(lifeOfAppConfig(t))
	collect(lifeOfPause(t))
	collect(lifeOfUpgrade(t))
	collect(watchOfClaims(t))
	for k := range got {
		if slices.Contains(granted, k) || strings.HasPrefix(k, backupv1.GroupVersion.Group+"/") || strings.HasPrefix(k, configv1.GroupVersion.Group+"/") || strings.HasPrefix(k, storeplanev1.GroupVersion.Group+"/") {
			delete(got, k)
		}
	}

	b, err := os.ReadFile("../../package/install/provider-clusterrole.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(bytes.SplitN(b, []byte("\n---\n"), 2)[0], role); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, r := range role.Rules {
		for _, g := range r.APIGroups {
			for _, res := range r.Resources {
				want[g+"/"+res] = slices.Sorted(slices.Values(append(want[g+"/"+res], r.Verbs...)))
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("package/install/provider-clusterrole.yaml: -what is asked for, +what is granted:\n%s", diff)
	}
}

const checkReport = `{"action":"check","finished":"2026-03-01T12:00:00Z","catalog":{"count":0}}`

// lifeOfBackup runs a Backup from creation to deletion: suspended, resumed, run manually, its
// schedule removed, and deleted with its data.
func lifeOfBackup(t *testing.T) *world {
	t.Helper()
	b := aBackup()
	b.Spec.ForProvider.DeletionPolicy = backupv1.Delete
	b.Finalizers = []string{"finalizer.managedresource.crossplane.io"}
	w := newWorld(t, append(shop(), b)...)
	step := func(change func()) {
		t.Helper()
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
		change()
		if err := w.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if _, err := w.reconcile(t, b); err != nil {
			t.Fatal(err)
		}
	}
	step(func() {})
	// The first check finds that there are no plain backups, and the second one has the key.
	for range 2 {
		check := w.jobs(t)
		if len(check) != 1 {
			t.Fatalf("want a check, got %v", check)
		}
		w.finish(t, check[0], checkReport)
		step(func() {})
		step(func() {})
		step(func() {})
	}
	if left := w.jobs(t); len(left) != 0 {
		t.Errorf("want no Job left, got %v", left)
	}
	step(func() { b.Spec.ForProvider.Suspend = true })
	step(func() { b.Spec.ForProvider.Suspend = false })
	step(func() { b.Annotations = map[string]string{backupv1.RunNowAnnotation: "1"} })
	step(func() { b.Spec.ForProvider.Schedule = "" })
	step(func() {
		b.Spec.ForProvider.Schedule = "@daily"
		b.Spec.ForProvider.Destination = backupv1.Destination{Type: backupv1.Volume, Bucket: "missing"}
	})
	step(func() { b.Spec.ForProvider.Destination = backupv1.Destination{Type: backupv1.S3, Bucket: "b"} })
	if err := w.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := w.reconcile(t, b); err != nil {
			t.Fatal(err)
		}
	}
	w.finish(t, "orders-delete-1", `{"action":"delete","finished":"2026-03-01T12:00:00Z"}`)
	if o, err := w.reconcile(t, b); err != nil || o.ResourceExists {
		t.Errorf("want the Backup gone with its data, got %+v, %v", o, err)
	}
	return w
}

func lifeOfRestore(t *testing.T) *world {
	t.Helper()
	b, r := aBackup(), aRestore()
	w := newWorld(t, append(shop(), b, r)...)
	reconcile := func() {
		t.Helper()
		if _, err := w.reconcile(t, r); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	reconcile()
	if diff := cmp.Diff([]string{"back-restore"}, w.jobs(t)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	w.finish(t, "back-restore", `{"action":"restore","finished":"2026-03-01T12:00:00Z","rows":3}`)
	credentials := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "back-restore-store"}}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(credentials), credentials); err != nil {
		t.Errorf("want the store's credentials while the Job runs: %v", err)
	}
	reconcile()
	if got := r.Status.AtProvider.Phase; got != backupv1.RestoreCompleted {
		t.Errorf("want Completed, got %s", got)
	}
	// The Restore's copy of the credentials is deleted when its Job has ended.
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(credentials), credentials); !kerrors.IsNotFound(err) {
		t.Errorf("want the store's credentials gone with the Job's end, got %v", err)
	}
	others := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "back-restore-store"}}
	if err := w.Create(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(others), others); err != nil {
		t.Errorf("want a Secret of another owner left alone: %v", err)
	}
	// Whatever happens to its Job, the Restore never runs again.
	if err := w.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "back-restore"}}); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if left := w.jobs(t); len(left) != 0 {
		t.Errorf("want no Job again, got %v", left)
	}
	return w
}

func lifeOfPhysical(t *testing.T) *world {
	t.Helper()
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "DatabaseCluster",
		"metadata": map[string]any{"namespace": "shop", "name": "orders", "uid": "dbc"},
		"spec":     map[string]any{"version": "17", "storageSize": "20Gi"},
	}}
	status := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-postgresql-status"},
		Data:       map[string]string{"cluster.json": `{"archive":{"recoverable":"2026-03-01T12:00:00Z"}}`},
	}
	b := aBackup()
	b.CreationTimestamp = metav1.NewTime(time.Now())
	b.Spec.ForProvider.Method, b.Spec.ForProvider.Schedule = backupv1.Physical, ""
	b.Spec.ForProvider.Source.Connection = backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}
	b.Annotations = map[string]string{backup.EscrowAnnotation: "true"}
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.example.com/v1", Kind: "DatabaseCluster", Name: "orders", UID: "another", Controller: new(true)}}
	b.Spec.ForProvider.Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "orders-backup-key", Key: "key"}}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-backup-key"}, Data: map[string][]byte{"key": []byte("k1")}}
	w := newWorld(t, append(shop(), cluster, status, b, key)...)
	if _, err := w.reconcile(t, b); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: backup.EscrowNamespace, Name: "shop.orders"}, &corev1.Secret{}); !kerrors.IsNotFound(err) {
		t.Errorf("A Backup that is not the DatabaseCluster's has a copy: %v", err)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	b.OwnerReferences[0].UID = "dbc"
	if err := w.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	copied := func() map[string][]byte {
		if _, err := w.reconcile(t, b); err != nil {
			t.Fatal(err)
		}
		s := &corev1.Secret{}
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: backup.EscrowNamespace, Name: "shop.orders"}, s); err != nil {
			t.Fatal(err)
		}
		return s.Data
	}
	want := map[string][]byte{"key": []byte("k1")}
	if diff := cmp.Diff(want, copied()); diff != "" {
		t.Errorf("The copy of the key: -want, +got:\n%s", diff)
	}
	key.Data["key"] = []byte("k2")
	if err := w.Update(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, copied()); diff != "" {
		t.Errorf("The copy of a key that was changed: -want, +got:\n%s", diff)
	}
	return w
}
