//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// outageFor is many times as long as Patroni's lock lives.
const outageFor = 2 * time.Minute

// losesAPIServer freezes it, which is worse than killing it: who asks it is not
// refused, but has to wait.
func (d *database) losesAPIServer(ctx context.Context, _ notes) error {
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := d.frozenAPI(ctx, outageFor); err != nil {
		return err
	}
	a, err := d.ledger.Account(ctx, from)
	if len(a.Reigns) != 1 {
		err = errors.Join(err, fmt.Errorf("the primary was demoted: %v", a.Reigns))
	}
	return err
}

// frozenAPI freezes the API server for a time, and waits until it answers again.
func (d *database) frozenAPI(ctx context.Context, length time.Duration) error {
	api, err := harness.FindAPIServer(os.Getenv("KUBECONFIG"))
	if err != nil {
		return unlessNode(err)
	}
	// Whatever comes: all else depends on it.
	defer func() { _ = api.Thaw() }()
	if err := api.Freeze(); err != nil {
		return err
	}
	if err := until(ctx, time.Now().Add(length)); err != nil {
		return err
	}
	if err := api.Thaw(); err != nil {
		return err
	}
	return await(ctx, settled, "the API server to answer", func(ctx context.Context) (bool, error) {
		_, err := d.ledger.Mark(ctx)
		return err == nil, err
	})
}

// await asks once a second, for what the watched namespace does not tell. An
// error of done is the reason why it is not.
func await(ctx context.Context, within time.Duration, what string, done func(context.Context) (bool, error)) error {
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		var ok bool
		ok, last = done(ctx)
		return ok, nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return errors.Join(fmt.Errorf("waited %s for %s", within, what), last)
	}
	return nil
}

// systemNamespace is where Crossplane and its functions run.
const systemNamespace = "crossplane-system"

// losesCrossplane takes away all that makes claims work, and then the primary.
func (d *database) losesCrossplane(ctx context.Context, n notes) error {
	deployments, err := controlPlane(ctx)
	if err != nil {
		return err
	}
	// Also after an interrupt: all claims of the cluster depend on it.
	defer func() {
		for _, dep := range deployments {
			_ = scaleTo(context.WithoutCancel(ctx), dep.Name, *dep.Spec.Replicas)
		}
	}()
	err = await(ctx, soon, "Crossplane's pods to be gone", func(ctx context.Context) (bool, error) {
		// Again and again: a Crossplane that ends still scales its functions up.
		for _, dep := range deployments {
			if err := scaleTo(ctx, dep.Name, 0); err != nil {
				return false, err
			}
		}
		pods, err := cluster.Kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("cannot list pods: %w", err)
		}
		return len(pods.Items) == 0, fmt.Errorf("there are still %d", len(pods.Items))
	})
	if err != nil {
		return err
	}
	old := d.primary()
	if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
		return err
	}
	if err := d.succeeded(ctx, old); err != nil {
		return err
	}
	if err := d.replaced(ctx, "Pod", old); err != nil {
		return err
	}
	n.Addf("%d deployments at zero", len(deployments))
	return nil
}

// controlPlane are the Deployments of Crossplane and its packages.
func controlPlane(ctx context.Context) ([]appsv1.Deployment, error) {
	l, err := cluster.Kube.AppsV1().Deployments(systemNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot list Deployments: %w", err)
	}
	if len(l.Items) < 2 {
		return nil, fmt.Errorf("namespace %s has %d Deployments, not Crossplane's and a function's", systemNamespace, len(l.Items))
	}
	return l.Items, nil
}

func scaleTo(ctx context.Context, deployment string, replicas int32) error {
	client := cluster.Kube.AppsV1().Deployments(systemNamespace)
	s, err := client.GetScale(ctx, deployment, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the scale of Deployment %s: %w", deployment, err)
	}
	s.Spec.Replicas = replicas
	if _, err := client.UpdateScale(ctx, deployment, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("cannot scale Deployment %s: %w", deployment, err)
	}
	return nil
}
