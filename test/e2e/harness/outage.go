package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// SystemNamespace is where Crossplane and its packages run.
const SystemNamespace = "crossplane-system"

// WithoutCrossplane calls do while Crossplane and its packages are scaled to zero. It scales them
// back before it returns, also after an interrupt, because all claims of the cluster depend on
// them. It does not wait until they run.
func (c *Cluster) WithoutCrossplane(ctx context.Context, within time.Duration, do func(deployments []appsv1.Deployment) error) error {
	l, err := c.Kube.AppsV1().Deployments(SystemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("cannot list Deployments: %w", err)
	}
	if len(l.Items) < 2 {
		return fmt.Errorf("namespace %s has %d Deployments, not Crossplane's and a function's", SystemNamespace, len(l.Items))
	}
	defer func() {
		for i := range l.Items {
			_ = c.scaleSystem(context.WithoutCancel(ctx), l.Items[i].Name, *l.Items[i].Spec.Replicas)
		}
	}()
	err = Await(ctx, within, "Crossplane's pods to be gone", func(ctx context.Context) (bool, error) {
		// Repeat it: a Crossplane that is shutting down still scales its functions up.
		for i := range l.Items {
			if err := c.scaleSystem(ctx, l.Items[i].Name, 0); err != nil {
				return false, err
			}
		}
		pods, err := c.Kube.CoreV1().Pods(SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("cannot list pods: %w", err)
		}
		return len(pods.Items) == 0, fmt.Errorf("there are still %d", len(pods.Items))
	})
	if err != nil {
		return err
	}
	return do(l.Items)
}

// WithoutCore calls do while Crossplane itself is scaled to zero, and its packages run. It scales it back before it returns, also
// after an interrupt.
func (c *Cluster) WithoutCore(ctx context.Context, within time.Duration, do func() error) (err error) {
	const core = "crossplane"
	d, err := c.Kube.AppsV1().Deployments(SystemNamespace).Get(ctx, core, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read Deployment %s: %w", core, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		// A run that was killed may have left it at zero.
		err = errors.Join(err, c.scaleSystem(ctx, core, max(1, *d.Spec.Replicas)), c.AwaitCrossplane(ctx, within))
	}()
	if err := c.scaleSystem(ctx, core, 0); err != nil {
		return err
	}
	err = Await(ctx, within, "Crossplane's pod to be gone", func(ctx context.Context) (bool, error) {
		pods, err := c.Kube.CoreV1().Pods(SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + core})
		if err != nil {
			return false, fmt.Errorf("cannot list pods: %w", err)
		}
		return len(pods.Items) == 0, errors.New("it is there")
	})
	if err != nil {
		return err
	}
	return do()
}

// AwaitCrossplane waits until each Deployment of SystemNamespace has a ready pod.
func (c *Cluster) AwaitCrossplane(ctx context.Context, within time.Duration) error {
	return Await(ctx, within, "Crossplane to be back", func(ctx context.Context) (bool, error) {
		l, err := c.Kube.AppsV1().Deployments(SystemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("cannot list Deployments: %w", err)
		}
		for i := range l.Items {
			if l.Items[i].Status.ReadyReplicas == 0 {
				return false, fmt.Errorf("%s has no ready pod", l.Items[i].Name)
			}
		}
		return true, nil
	})
}

// scaleSystem scales a Deployment of SystemNamespace.
func (c *Cluster) scaleSystem(ctx context.Context, deployment string, replicas int32) error {
	client := c.Kube.AppsV1().Deployments(SystemNamespace)
	// Its controller writes its status meanwhile.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		s, err := client.GetScale(ctx, deployment, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.Spec.Replicas = replicas
		_, err = client.UpdateScale(ctx, deployment, s, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot scale Deployment %s: %w", deployment, err)
	}
	return nil
}
