package harness

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cordon makes all nodes unschedulable, or schedulable again: a pod that ends meanwhile does not come back.
func (c *Cluster) Cordon(ctx context.Context, on bool) error {
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list nodes: %w", err)
	}
	for _, node := range nodes.Items {
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
		if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("cannot cordon node %s: %w", node.Name, err)
		}
	}
	return nil
}
