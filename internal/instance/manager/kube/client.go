package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// fieldManager is the field manager of what the instance managers write.
const fieldManager = "instance"

// timeout bounds one call. A watch has no timeout.
const timeout = 10 * time.Second

// Client is a client of the API server for one namespace.
type Client struct {
	core, apps rest.Interface
	namespace  string

	// self is the UID of this program's own pod, or "" if it is not known.
	self types.UID
}

// New returns a client for a namespace.
func New(config *rest.Config, namespace string) (*Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("cannot make a scheme: %w", err)
		}
	}
	core, err := restClient(config, scheme, corev1.SchemeGroupVersion, "/api")
	if err != nil {
		return nil, err
	}
	apps, err := restClient(config, scheme, appsv1.SchemeGroupVersion, "/apis")
	if err != nil {
		return nil, err
	}
	return &Client{core: core, apps: apps, namespace: namespace, self: selfOf(config)}, nil
}

func restClient(config *rest.Config, scheme *runtime.Scheme, gv schema.GroupVersion, path string) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.GroupVersion = &gv
	c.APIPath = path
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "storeplane-instance"
	// All volume claims are read at once before a server starts.
	c.QPS, c.Burst = 20, 40
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client of %s: %w", gv, err)
	}
	return client, nil
}

// ConfigMap returns a ConfigMap by its name.
func (c *Client) ConfigMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	into := &corev1.ConfigMap{}
	return into, c.get(ctx, c.core, "configmaps", name, into)
}

// Pod returns a Pod by its name.
func (c *Client) Pod(ctx context.Context, name string) (*corev1.Pod, error) {
	into := &corev1.Pod{}
	return into, c.get(ctx, c.core, "pods", name, into)
}

// Grace returns the grace period of a Pod that is being deleted, and 0 of another one, or if the API server does not answer.
func (c *Client) Grace(ctx context.Context, pod string) time.Duration {
	read, err := c.Pod(ctx, pod)
	if err != nil || read.DeletionGracePeriodSeconds == nil {
		return 0
	}
	return time.Duration(*read.DeletionGracePeriodSeconds) * time.Second
}

// VolumeClaim returns a PersistentVolumeClaim by its name.
func (c *Client) VolumeClaim(ctx context.Context, name string) (*corev1.PersistentVolumeClaim, error) {
	into := &corev1.PersistentVolumeClaim{}
	return into, c.get(ctx, c.core, "persistentvolumeclaims", name, into)
}

// StatefulSet returns a StatefulSet by its name.
func (c *Client) StatefulSet(ctx context.Context, name string) (*appsv1.StatefulSet, error) {
	into := &appsv1.StatefulSet{}
	return into, c.get(ctx, c.apps, "statefulsets", name, into)
}

// Pods returns the Pods that a label selector selects.
func (c *Client) Pods(ctx context.Context, selector string) ([]*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list := &corev1.PodList{}
	err := c.core.Get().Namespace(c.namespace).Resource("pods").Param("labelSelector", selector).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("cannot list Pods %s: %w", selector, err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	for i := range list.Items {
		pods = append(pods, &list.Items[i])
	}
	return pods, nil
}

func (c *Client) get(ctx context.Context, client rest.Interface, resource, name string, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := client.Get().Namespace(c.namespace).Resource(resource).Name(name).Do(ctx).Into(into); err != nil {
		return fmt.Errorf("cannot get %s %s: %w", resource, name, err)
	}
	return nil
}

// PatchData patches the data of a ConfigMap: nil removes a key.
func (c *Client) PatchData(ctx context.Context, name string, data map[string]*string) error {
	return c.merge(ctx, "configmaps", name, map[string]any{"data": data})
}

// Annotate patches the annotations of a ConfigMap: nil removes an annotation.
func (c *Client) Annotate(ctx context.Context, name string, annotations map[string]any) error {
	return c.merge(ctx, "configmaps", name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}

// Replace sets an annotation of a ConfigMap that has not changed since it was read.
func (c *Client) Replace(ctx context.Context, read *corev1.ConfigMap, annotation, value string) error {
	return c.merge(ctx, "configmaps", read.Name, map[string]any{"metadata": map[string]any{
		"resourceVersion": read.ResourceVersion,
		"annotations":     map[string]string{annotation: value},
	}})
}

// Remove removes an annotation of a ConfigMap that has not changed since it was read. Raced
// reports whether it has.
func (c *Client) Remove(ctx context.Context, read *corev1.ConfigMap, annotation string) error {
	return c.merge(ctx, "configmaps", read.Name, map[string]any{"metadata": map[string]any{
		"resourceVersion": read.ResourceVersion,
		"annotations":     map[string]any{annotation: nil},
	}})
}

// Own makes owner the only owner of a ConfigMap.
func (c *Client) Own(ctx context.Context, name string, owner metav1.OwnerReference) error {
	return c.merge(ctx, "configmaps", name, map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}})
}

// ErrHeld is the error for a lock that the given holder does not hold.
var ErrHeld = errors.New("the lock is not held by that one")

// renewedAnnotation is the annotation of a lock that contains when its holder renewed it last.
const renewedAnnotation = "renewTime"

// ReleaseLock removes the holder of a lock, which is an annotation of a ConfigMap, because the
// holder has ended. It returns ErrHeld if another one holds the lock, or if it was renewed
// after the holder had ended, as by the next pod of the same name. It returns another error if
// the lock changes meanwhile. It is not for an annotation whose value does not name its holder.
func (c *Client) ReleaseLock(ctx context.Context, name, annotation, holder string, ended time.Time) error {
	lock, err := c.ConfigMap(ctx, name)
	if err != nil {
		return err
	}
	if by, held := lock.Annotations[annotation]; !held || by != holder {
		return ErrHeld
	}
	if renewed, err := time.Parse(time.RFC3339, lock.Annotations[renewedAnnotation]); err == nil && !ended.IsZero() && renewed.After(ended) {
		return ErrHeld
	}
	return c.Remove(ctx, lock, annotation)
}

// PatchStorage requests a size for a volume claim.
func (c *Client) PatchStorage(ctx context.Context, claim, size string) error {
	return c.merge(ctx, "persistentvolumeclaims", claim, map[string]any{
		"spec": map[string]any{"resources": map[string]any{"requests": map[string]string{string(corev1.ResourceStorage): size}}},
	})
}

func (c *Client) merge(ctx context.Context, resource, name string, patch any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("cannot write a patch of %s %s: %w", resource, name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = c.core.Patch(types.MergePatchType).Namespace(c.namespace).Resource(resource).Name(name).
		Param("fieldManager", fieldManager).Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("cannot patch %s %s: %w", resource, name, err)
	}
	return nil
}

// DeletePod deletes a pod if it has not changed since it was read: a change may have removed
// the reason to delete it.
func (c *Client) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.core.Delete().Namespace(c.namespace).Resource("pods").Name(pod.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}}).
		Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("cannot delete Pod %s: %w", pod.Name, err)
	}
	return nil
}

// Event creates an event about an object of the namespace.
func (c *Client) Event(ctx context.Context, about metav1.OwnerReference, pod, kind, reason, message string) error {
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: about.Name + "-", Namespace: c.namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.APIVersion, Kind: about.Kind, Namespace: c.namespace, Name: about.Name, UID: about.UID,
		},
		Type: kind, Reason: reason, Message: message, Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: fieldManager, Host: pod},
		ReportingController: "storeplane.example.com/instance", ReportingInstance: pod,
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.core.Post().Namespace(c.namespace).Resource("events").Body(event).Do(ctx).Error(); err != nil {
		return fmt.Errorf("cannot write event %s: %w", reason, err)
	}
	return nil
}
