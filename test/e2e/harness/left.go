package harness

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// everyNamespaceHas are the objects that Kubernetes itself creates in a namespace.
var everyNamespaceHas = []string{"ConfigMap kube-root-ca.crt", "ServiceAccount default"}

// Objects returns all objects in a namespace, of every kind, except events and those that
// Kubernetes itself creates. Each has at least its metadata.
func (c *Cluster) Objects(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(c.Kube.Discovery())
	if err != nil {
		return nil, fmt.Errorf("cannot list the kinds of the API server: %w", err)
	}
	var out []unstructured.Unstructured
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %q: %w", l.GroupVersion, err)
		}
		for _, r := range l.APIResources {
			if r.Kind == "Event" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			objs, err := c.Dynamic.Resource(gv.WithResource(r.Name)).Namespace(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("cannot list %s: %w", r.Name, err)
			}
			for _, o := range objs.Items {
				if !slices.Contains(everyNamespaceHas, KeyOf(&o).String()) {
					out = append(out, o)
				}
			}
		}
	}
	return out, nil
}

// Left lists all objects in a namespace, by kind and name.
func (c *Cluster) Left(ctx context.Context, namespace string) ([]string, error) {
	objects, err := c.Objects(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, o := range objects {
		out = append(out, KeyOf(&o).String())
	}
	slices.Sort(out)
	return out, nil
}

// AwaitLeft waits until a namespace contains no other objects than those named by stays, and
// returns what it contains.
func (c *Cluster) AwaitLeft(ctx context.Context, namespace string, within time.Duration, stays []string) ([]string, error) {
	var left []string
	err := wait.For(func(ctx context.Context) (bool, error) {
		now, err := c.Left(ctx, namespace)
		if err != nil {
			return false, err
		}
		left = now
		return !slices.ContainsFunc(left, func(k string) bool { return !slices.Contains(stays, k) }), nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return left, fmt.Errorf("waited %s for all but %v to be gone from namespace %s: %w", within, stays, namespace, err)
	}
	return left, nil
}

// AwaitEnd waits until a claim that is being deleted is gone with all objects that were created for
// it. It returns an error if the namespace then contains more, or less, than stays.
func (c *Cluster) AwaitEnd(ctx context.Context, w *World, kind, namespace, name string, within time.Duration, stays []string) error {
	if err := w.AwaitGone(ctx, within, kind, name); err != nil {
		return err
	}
	left, err := c.AwaitLeft(ctx, namespace, within, stays)
	if err != nil {
		return fmt.Errorf("%w: left are %v", err, left)
	}
	if missing := slices.DeleteFunc(slices.Clone(stays), func(k string) bool { return slices.Contains(left, k) }); len(missing) > 0 {
		return fmt.Errorf("%v should have stayed and are gone", missing)
	}
	return nil
}
