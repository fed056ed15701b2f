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

// Owner is the field manager of the fields that the provider applies.
const Owner = client.FieldOwner("storeplane-provider")

// Kube writes objects and lists Jobs with Client, and gets single objects with Reader, past the
// cache.
type Kube struct {
	Client client.Client
	Reader client.Reader
}

// Apply applies an object by server-side apply, without its status. It takes over fields that
// another field manager owns.
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

// Create creates a Job, which cannot be changed later. It is no error if the Job exists already and
// has the same owner: the cache may be behind.
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

// Remove deletes an object and, in the background, the objects that it owns. An object of the same
// name with another UID stays.
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

// Resume sets the last schedule time of a suspended CronJob to now: it skips the runs that it
// missed and starts those that are due from now on.
func (k Kube) Resume(ctx context.Context, c *batchv1.CronJob, now time.Time) error {
	next := c.DeepCopy()
	next.Status.LastScheduleTime = new(metav1.NewTime(now))
	if err := k.Client.Status().Patch(ctx, next, client.MergeFrom(c), Owner); err != nil {
		return fmt.Errorf("cannot resume %s: %w", name(c), err)
	}
	return nil
}

// Find gets an object past the cache. It returns false if the object does not exist.
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

// Work lists the Jobs, CronJobs and pods with a label, from the cache.
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

// Lag is by how much a cache may be behind: a created object is not expected in it sooner.
const Lag = 2 * time.Second
