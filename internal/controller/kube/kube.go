package kube

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner of the fields that are applied.
const Owner = client.FieldOwner("storeplane-provider")

// Kube writes with a client, and reads past its cache.
type Kube struct {
	Client client.Client
	Reader client.Reader
}

// Apply an object by server-side apply.
func (k Kube) Apply(ctx context.Context, o client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name(o), err)
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	if err := k.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), Owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("cannot apply %s: %w", name(o), err)
	}
	return nil
}

// Create a Job, which cannot be changed later. That it is there already is no
// error if it is its owner's: the cache may be behind.
func (k Kube) Create(ctx context.Context, j *batchv1.Job) error {
	err := k.Client.Create(ctx, j.DeepCopy(), Owner)
	if !kerrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("cannot create %s: %w", name(j), err)
		}
		return nil
	}
	have := &batchv1.Job{}
	if err := k.Reader.Get(ctx, client.ObjectKeyFromObject(j), have); err != nil {
		return fmt.Errorf("cannot get %s: %w", name(j), err)
	}
	if c, want := metav1.GetControllerOf(have), metav1.GetControllerOf(j); c == nil || want == nil || c.UID != want.UID {
		return fmt.Errorf("cannot create %s: one exists already that another object owns", name(j))
	}
	return nil
}

// Remove an object and what it made, unless it is another one by now.
func (k Kube) Remove(ctx context.Context, o client.Object) error {
	opts := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if uid := o.GetUID(); uid != "" {
		opts = append(opts, client.Preconditions{UID: &uid})
	}
	if err := k.Client.Delete(ctx, o, opts...); err != nil && !kerrors.IsNotFound(err) && !kerrors.IsConflict(err) {
		return fmt.Errorf("cannot delete %s: %w", name(o), err)
	}
	return nil
}

// Resume lets a suspended CronJob forget what it missed: it starts what is due
// from now on.
func (k Kube) Resume(ctx context.Context, c *batchv1.CronJob, now time.Time) error {
	next := c.DeepCopy()
	next.Status.LastScheduleTime = new(metav1.NewTime(now))
	if err := k.Client.Status().Patch(ctx, next, client.MergeFrom(c), Owner); err != nil {
		return fmt.Errorf("cannot resume %s: %w", name(c), err)
	}
	return nil
}

// Find an object past the cache; false if there is none.
func (k Kube) Find(ctx context.Context, namespace, named string, into client.Object) (bool, error) {
	err := k.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: named}, into)
	if kerrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot get %T %s/%s: %w", into, namespace, named, err)
	}
	return true, nil
}

// Work is the Jobs, CronJobs and pods with a label.
func (k Kube) Work(ctx context.Context, namespace, label, value string) (*batchv1.JobList, *batchv1.CronJobList, *corev1.PodList, error) {
	jobs, crons, pods := &batchv1.JobList{}, &batchv1.CronJobList{}, &corev1.PodList{}
	for _, l := range []client.ObjectList{jobs, crons, pods} {
		if err := k.Client.List(ctx, l, client.InNamespace(namespace), client.MatchingLabels{label: value}); err != nil {
			return nil, nil, nil, fmt.Errorf("cannot list %T of %s: %w", l, value, err)
		}
	}
	return jobs, crons, pods, nil
}

func name(o client.Object) string {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = fmt.Sprintf("%T", o)
	}
	return kind + " " + o.GetNamespace() + "/" + o.GetName()
}

// Lag is by how much a cache may be behind: what was made is not looked for
// before.
const Lag = 2 * time.Second
