package kube

import "context"

// Label sets labels of a Pod: nil removes a label.
func (c *Client) Label(ctx context.Context, pod string, labels map[string]any) error {
	return c.merge(ctx, "pods", pod, map[string]any{"metadata": map[string]any{"labels": labels}})
}
