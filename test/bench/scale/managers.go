package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// storageClass is the StorageClass of the volumes, which no node mounts.
const storageClass = "bench-scale"

// volumes creates a StorageClass and PersistentVolumes for the databases, because volumes for
// simulated nodes cannot be provisioned.
func (b *bench) volumes(ctx context.Context) error {
	most := 0
	for _, n := range b.cli.Shops {
		most = max(most, n)
	}
	if most == 0 {
		return nil
	}
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: storageClass, Labels: map[string]string{harness.Label: namespace}}, Provisioner: "kubernetes.io/no-provisioner"}
	if _, err := b.cluster.Kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !kerrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create the storage class: %w", err)
	}
	// A volume of one fleet is not bound again in the next one, so there is one for each shop of
	// all fleets.
	total := 0
	for _, n := range b.cli.Shops {
		total += n
	}
	for i := range total {
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-scale-%d", i), Labels: map[string]string{fake: "true"}},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: storageClass,
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			},
		}
		if _, err := b.cluster.Kube.CoreV1().PersistentVolumes().Create(ctx, v, metav1.CreateOptions{}); err != nil && !kerrors.IsAlreadyExists(err) {
			return fmt.Errorf("cannot create a volume: %w", err)
		}
	}
	return nil
}

// resources are what an instance manager reads and writes, by kind.
var resources = map[string]schema.GroupVersionResource{
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
	"ConfigMap":   {Version: "v1", Resource: "configmaps"},
	"Secret":      {Version: "v1", Resource: "secrets"},
}

// managers simulate the instance managers of all databases. They watch, as those do: to list all objects again and again would
// take more of the API server than what is measured.
type managers struct {
	bench   *bench
	stores  map[string]cache.Store // by kind
	changed atomic.Bool
}

// playManagers starts to simulate the instance managers of all databases: every second they report what is requested of them
// as done.
func (b *bench) playManagers(ctx context.Context) error {
	m := &managers{bench: b, stores: map[string]cache.Store{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.cluster.Dynamic, 0, namespace, nil)
	note := func(any) { m.changed.Store(true) }
	for kind, gvr := range resources {
		informer := factory.ForResource(gvr).Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(any, any) { m.changed.Store(true) }, DeleteFunc: note}); err != nil {
			return fmt.Errorf("cannot watch %s: %w", gvr.Resource, err)
		}
		m.stores[kind] = informer.GetStore()
	}
	factory.Start(ctx.Done())
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for gvr, synced := range factory.WaitForCacheSync(within.Done()) {
		if !synced {
			return fmt.Errorf("cannot list %s within a minute, to simulate instance managers", gvr.Resource)
		}
	}
	go m.run(ctx)
	return nil
}

func (m *managers) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if m.changed.Swap(false) && m.reportAll(ctx) != nil {
				m.changed.Store(true)
			}
		}
	}
}

// reportAll writes the reports that are others than those that are there.
func (m *managers) reportAll(ctx context.Context) error {
	var all []*unstructured.Unstructured
	for _, store := range m.stores {
		for _, o := range store.List() {
			if u, ok := o.(*unstructured.Unstructured); ok {
				all = append(all, u)
			}
		}
	}
	reports := reported(all)
	return each(slices.Sorted(maps.Keys(reports)), func(name string) error {
		_, err := m.bench.cluster.Patch(ctx, "ConfigMap", namespace, name, harness.Patch{"data": reports[name]})
		return err
	})
}

// reported returns the data that instance managers write into ConfigMaps, by name, given all objects of the cluster, which are
// not changed: what is there already is not among it.
func reported(all []*unstructured.Unstructured) map[string]map[string]string {
	var objects, before []*unstructured.Unstructured
	for _, u := range all {
		switch {
		case u.GetKind() == "StatefulSet" && !runs(u):
			continue
		case u.GetKind() == "ConfigMap":
			before = append(before, u)
			u = u.DeepCopy()
		}
		objects = append(objects, u)
	}
	converge.RunInstances(objects)
	out := map[string]map[string]string{}
	for _, u := range objects {
		if u.GetKind() == "ConfigMap" {
			out[u.GetName()], _, _ = unstructured.NestedStringMap(u.Object, "data")
		}
	}
	for _, u := range before {
		if data, _, _ := unstructured.NestedStringMap(u.Object, "data"); maps.Equal(data, out[u.GetName()]) {
			delete(out, u.GetName())
		}
	}
	return out
}

// runs reports whether a StatefulSet has a pod in which an instance manager runs.
func runs(set *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedInt64(set.Object, "status", "readyReplicas")
	return ready > 0
}
