package harness

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sidecars returns the init containers that keep running beside a pod's other containers.
func sidecars(init []corev1.Container) (out []corev1.Container) {
	for _, c := range init {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	return out
}

// Logs returns the logs of all containers in a namespace, by "pod/container". Those of pending pods
// and of ordinary init containers are left out.
func (c *Cluster) Logs(ctx context.Context, namespace string) (map[string]string, error) {
	pods, err := c.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list pods: %w", err)
	}
	out := map[string]string{}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodPending {
			continue
		}
		for _, ct := range slices.Concat(sidecars(p.Spec.InitContainers), p.Spec.Containers) {
			raw, err := c.Kube.CoreV1().Pods(namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: ct.Name}).DoRaw(ctx)
			if err != nil {
				return nil, fmt.Errorf("cannot read the log of %s/%s: %w", namespace, p.Name, err)
			}
			out[p.Name+"/"+ct.Name] = string(raw)
		}
	}
	return out, nil
}
