package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// KillProvider kills all pods of the provider at once, and waits until as many new ones are ready.
func (c *Cluster) KillProvider(ctx context.Context, within time.Duration) error {
	const namespace, label = "crossplane-system", "pkg.crossplane.io/provider"
	list := metav1.ListOptions{LabelSelector: label}
	pods := c.Kube.CoreV1().Pods(namespace)
	before, err := pods.List(ctx, list)
	if err != nil || len(before.Items) == 0 {
		return errors.Join(err, errors.New("cannot find the provider's pods"))
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, list); err != nil {
		return fmt.Errorf("cannot delete the provider's pods: %w", err)
	}
	err = wait.For(func(ctx context.Context) (bool, error) {
		now, err := pods.List(ctx, list)
		if err != nil {
			return false, err
		}
		ready := 0
		for i := range now.Items {
			old := slices.ContainsFunc(before.Items, func(p corev1.Pod) bool { return p.UID == now.Items[i].UID })
			if PodReady(&now.Items[i]) && !old {
				ready++
			}
		}
		return ready >= len(before.Items), nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("waited %s for the provider's new pods: %w", within, err)
	}
	return nil
}
