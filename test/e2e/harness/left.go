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

// everyNamespaceHas is what Kubernetes itself puts into a namespace.
var everyNamespaceHas = []string{"ConfigMap kube-root-ca.crt", "ServiceAccount default"}

// Objects are all that is in a namespace, whatever its kind, but for what
// Kubernetes itself puts there and for events. Of each there is the metadata at
// least.
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

// Left lists all that is in a namespace, by kind and name.
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

// AwaitLeft waits until nothing is left in a namespace but what stays, and
// returns what is.
func (c *Cluster) AwaitLeft(ctx context.Context, namespace string, within time.Duration, stays []string) ([]string, error) {
	var left []string
	err := wait.For(func(ctx context.Context) (bool, error) {
		var err error
		if left, err = c.Left(ctx, namespace); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(left, func(k string) bool { return !slices.Contains(stays, k) }), nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return left, fmt.Errorf("waited %s for all but %v to be gone from namespace %s: %w", within, stays, namespace, err)
	}
	return left, nil
}

// AwaitEnd waits until a claim that is being deleted is gone, with all that was
// made for it, and returns an error when there is more, or less, left in its
// namespace than what stays.
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
