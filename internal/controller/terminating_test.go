package controller_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
)

// TestNamespaceTerminates: in a terminating namespace nothing can be created, and objects are
// deleted in any order. A Backup whose ProviderConfigUsage was deleted first must not try to create
// it again, which would block the namespace for ever.
func TestNamespaceTerminates(t *testing.T) {
	for _, policy := range []backupv1.DeletionPolicy{backupv1.Orphan, backupv1.Delete} {
		t.Run(string(policy), func(t *testing.T) {
			b := aBackup()
			b.Spec.ForProvider.DeletionPolicy = policy
			b.Finalizers = []string{"finalizer.managedresource.crossplane.io"}
			w := newWorld(t, append(shop(), b)...)
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatal(err)
			}
			usages := &storeplanev1.ProviderConfigUsageList{}
			if err := w.List(t.Context(), usages); err != nil || len(usages.Items) != 1 {
				t.Fatalf("want the Backup to use its ProviderConfig, got %v, %v", usages.Items, err)
			}

			namespace := &corev1.Namespace{}
			if err := w.Get(t.Context(), client.ObjectKey{Name: "shop"}, namespace); err != nil {
				t.Fatal(err)
			}
			namespace.Finalizers = []string{"kubernetes"}
			if err := w.Update(t.Context(), namespace); err != nil {
				t.Fatal(err)
			}
			for _, o := range []client.Object{namespace, b, &usages.Items[0]} {
				if err := w.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			w.provider = interceptor.NewClient(w.WithWatch, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return errors.New("unable to create new content in namespace shop because it is being terminated")
				},
			})
			if o, err := w.reconcile(t, b); err != nil || o.ResourceExists {
				t.Errorf("want nothing to hold up the Backup, got %+v, %v", o, err)
			}
		})
	}
}
