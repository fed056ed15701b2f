package harness

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// Evict evicts a pod as the drain of a node does: it retries as long as a disruption budget
// refuses. It returns the number of refusals.
func (c *Cluster) Evict(ctx context.Context, namespace, pod string, within time.Duration) (int, error) {
	refused := 0
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}}
	err := wait.For(func(ctx context.Context) (bool, error) {
		err := c.Kube.PolicyV1().Evictions(namespace).Evict(ctx, eviction)
		switch {
		case errors.IsTooManyRequests(err):
			refused++
			return false, nil
		case errors.IsNotFound(err):
			return true, nil
		default:
			return err == nil, err
		}
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return refused, fmt.Errorf("cannot evict pod %s/%s, refused %d times: %w", namespace, pod, refused, err)
	}
	return refused, nil
}
