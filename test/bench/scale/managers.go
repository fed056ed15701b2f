package main

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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

// playManagers simulates the instance managers of all databases: every second it reports what is
// requested of them as done.
func (b *bench) playManagers(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = b.reportAll(ctx) // It is retried at the next tick.
		}
	}
}

func (b *bench) reportAll(ctx context.Context) error {
	sets, err := b.cluster.Kube.AppsV1().StatefulSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(sets.Items) == 0 {
		return err
	}
	configs, err := b.cluster.Kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	secrets, err := b.cluster.Kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var objects []*unstructured.Unstructured
	add := func(kind string, o runtime.Object) {
		if u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o); err == nil {
			u["kind"] = kind
			objects = append(objects, &unstructured.Unstructured{Object: u})
		}
	}
	for i := range sets.Items {
		if sets.Items[i].Status.ReadyReplicas > 0 {
			add("StatefulSet", &sets.Items[i])
		}
	}
	before := map[string]map[string]string{}
	for i := range configs.Items {
		before[configs.Items[i].Name] = configs.Items[i].Data
		add("ConfigMap", &configs.Items[i])
	}
	for i := range secrets.Items {
		add("Secret", &secrets.Items[i])
	}
	converge.RunInstances(objects)
	for _, u := range objects {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		if u.GetKind() != "ConfigMap" || maps.Equal(data, before[u.GetName()]) {
			continue
		}
		if _, err := b.cluster.Patch(ctx, "ConfigMap", namespace, u.GetName(), harness.Patch{"data": data}); err != nil {
			return err
		}
	}
	return nil
}
