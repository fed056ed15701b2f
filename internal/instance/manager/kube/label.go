package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Label sets labels of a Pod: nil removes a label. The API server refuses it for a later Pod of the name, whose UID is
// another one.
func (c *Client) Label(ctx context.Context, pod string, uid types.UID, labels map[string]any) error {
	return c.merge(ctx, "pods", pod, map[string]any{"metadata": map[string]any{"uid": uid, "labels": labels}})
}

// Relabel sets labels of a Pod that has not changed since it was read: nil removes a label. Raced reports whether it has.
func (c *Client) Relabel(ctx context.Context, read *corev1.Pod, labels map[string]any) error {
	return c.merge(ctx, "pods", read.Name, map[string]any{"metadata": map[string]any{
		"resourceVersion": read.ResourceVersion,
		"labels":          labels,
	}})
}
