package harness

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// apiClients is the number of clients that keep the API server busy.
const apiClients = 4

// BusyAPI keeps the API server busy with lists of all pods and with writes of 10 KB, by four clients, until end is called. They write in
// a namespace of their own, which is created: a World keeps every version of the objects in its namespace.
func (c *Cluster) BusyAPI(ctx context.Context, namespace string) (end func(), err error) {
	if ns, err := c.Get(ctx, "Namespace", "", namespace); err != nil {
		return nil, err
	} else if ns == nil {
		if err := c.CreateNamespace(ctx, namespace); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	maps := c.Kube.CoreV1().ConfigMaps(namespace)
	for i := range apiClients {
		name := fmt.Sprintf("e2e-load-%d", i)
		_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		// A busy API server may not have deleted the one of the last call.
		if err != nil && !apierrors.IsAlreadyExists(err) {
			cancel()
			all.Wait()
			return nil, fmt.Errorf("cannot create ConfigMap %s: %w", name, err)
		}
		all.Go(func() {
			defer func() { _ = maps.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) }()
			for n := 0; ctx.Err() == nil; n++ {
				patch := fmt.Appendf(nil, `{"data":{"n":"%d %s"}}`, n, strings.Repeat("x", 10_000))
				// A busy API server may refuse some.
				_, _ = maps.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
				_, _ = c.Kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); all.Wait() }), nil
}
