package main

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// annProvisionedBy is the annotation in which the provisioning library stores the provisioner of
// a volume.
const annProvisionedBy = "pv.kubernetes.io/provisioned-by"

// resizer grants PersistentVolumeClaims the storage that they request when they request more than
// they have.
type resizer struct {
	client kubernetes.Interface
	name   string
	claims cache.Store
	queue  workqueue.TypedRateLimitingInterface[string]
}

func newResizer(client kubernetes.Interface, shared informers.SharedInformerFactory, name string) (*resizer, error) {
	informer := shared.Core().V1().PersistentVolumeClaims().Informer()
	r := &resizer{
		client: client,
		name:   name,
		claims: informer.GetStore(),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	enqueue := func(obj any) {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			r.queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch claims: %w", err)
	}
	return r, nil
}

func (r *resizer) run(ctx context.Context) {
	go func() {
		<-ctx.Done()
		r.queue.ShutDown()
	}()
	for {
		key, stopped := r.queue.Get()
		if stopped {
			return
		}
		if err := r.sync(ctx, key); err != nil {
			log.Printf("cannot resize claim %s, will try again: %v", key, err)
			r.queue.AddRateLimited(key)
		} else {
			r.queue.Forget(key)
		}
		r.queue.Done(key)
	}
}

func (r *resizer) sync(ctx context.Context, key string) error {
	obj, ok, err := r.claims.GetByKey(key)
	if err != nil || !ok {
		return err
	}
	pvc, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok || !wantsMore(pvc) {
		return nil
	}
	pv, err := r.client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get volume: %w", err)
	}
	if pv.Annotations[annProvisionedBy] != r.name {
		return nil
	}

	// The volume is updated first: a claim must never show a larger capacity than its volume.
	want := pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	if pv.Spec.Capacity.Storage().Cmp(want) < 0 {
		pv.Spec.Capacity[corev1.ResourceStorage] = want
		if _, err := r.client.CoreV1().PersistentVolumes().Update(ctx, pv, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("cannot raise the capacity of volume %s: %w", pv.Name, err)
		}
	}
	_, err = r.client.CoreV1().PersistentVolumeClaims(pvc.Namespace).UpdateStatus(ctx, resized(pvc), metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("cannot raise the capacity of the claim: %w", err)
	}
	return nil
}

// wantsMore reports whether a bound claim requests more storage than it has.
func wantsMore(pvc *corev1.PersistentVolumeClaim) bool {
	return pvc.Status.Phase == corev1.ClaimBound && pvc.Status.Capacity.Storage().Cmp(*pvc.Spec.Resources.Requests.Storage()) < 0
}

// resized returns a copy of the claim with the status after its expansion.
func resized(pvc *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	out := pvc.DeepCopy()
	out.Status.Capacity[corev1.ResourceStorage] = pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	out.Status.AllocatedResourceStatuses = nil
	out.Status.Conditions = nil
	for _, c := range pvc.Status.Conditions {
		switch c.Type {
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
			corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
		default:
			out.Status.Conditions = append(out.Status.Conditions, c)
		}
	}
	return out
}
