//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// deletePod deletes exactly this pod and no later one of the same name.
func (d *database) deletePod(ctx context.Context, p *unstructured.Unstructured, grace *int64) error {
	err := cluster.Kube.CoreV1().Pods(d.namespace).Delete(ctx, p.GetName(), metav1.DeleteOptions{
		GracePeriodSeconds: grace, Preconditions: metav1.NewUIDPreconditions(string(p.GetUID())),
	})
	if err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", p.GetName(), err)
	}
	return nil
}

func (d *database) losesPrimary(ctx context.Context, _ notes) error {
	old := d.primary()
	if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
		return err
	}
	return d.succeeded(ctx, old)
}

// losesProcesses kills Patroni and PostgreSQL. They are stopped first, so that none of them notices
// the end of another one.
func (d *database) losesProcesses(ctx context.Context, n notes) error {
	p := d.primary()
	if _, err := harness.Signal(p, syscall.SIGSTOP, container); err != nil {
		return unlessNode(err)
	}
	killed, err := harness.Signal(p, syscall.SIGKILL, container)
	if err != nil {
		return errors.Join(err, thaw(p))
	}
	n.Addf("%d processes", killed)
	return d.world.Await(ctx, soon, "pod "+p.GetName()+" to start its container again", func() (bool, string) {
		now := restarts(d.world.Get("Pod", p.GetName()))
		return now > restarts(p), fmt.Sprintf("it was started again %d times", now)
	})
}

// restarts returns how often the container of a pod has restarted.
func restarts(p *unstructured.Unstructured) int64 {
	statuses, err := harness.List(p, "status", "containerStatuses")
	if err != nil {
		return 0
	}
	for _, s := range statuses {
		if s["name"] == container {
			count, _ := s["restartCount"].(int64)
			return count
		}
	}
	return 0
}

// unlessNode turns the error of a fault that cannot be caused here into that of a skipped check.
func unlessNode(err error) error {
	if errors.Is(err, harness.ErrNotNode) || errors.Is(err, harness.ErrNotEmbedded) {
		return suite.SkippedError(err.Error())
	}
	return err
}

func (d *database) losesReplica(ctx context.Context, _ notes) error {
	old := d.replica()
	if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
		return err
	}
	return d.replaced(ctx, "Pod", old)
}

// replaced waits for a new object of the same name.
func (d *database) replaced(ctx context.Context, kind string, old *unstructured.Unstructured) error {
	return d.world.Await(ctx, settled, "a new "+kind+" "+old.GetName(), func() (bool, string) {
		u := d.world.Get(kind, old.GetName())
		return u != nil && u.GetUID() != old.GetUID(), "there is none"
	})
}

func (d *database) losesVolume(ctx context.Context, _ notes) error {
	pod := d.replica()
	volume := d.world.Get("PersistentVolumeClaim", "data-"+pod.GetName())
	// The claim is removed once no pod uses it.
	if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, volume.GetName()); err != nil {
		return err
	}
	if err := d.deletePod(ctx, pod, new(int64(0))); err != nil {
		return err
	}
	return d.replaced(ctx, "PersistentVolumeClaim", volume)
}

func (d *database) losesAll(ctx context.Context, n notes) error {
	old := d.pods()
	all := metav1.ListOptions{LabelSelector: patroniLabel + "=" + setName}
	if err := cluster.Kube.CoreV1().Pods(d.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, all); err != nil {
		return fmt.Errorf("cannot delete all pods: %w", err)
	}
	for _, p := range old {
		if err := d.replaced(ctx, "Pod", p); err != nil {
			return err
		}
	}
	n.Addf("%d pods", len(old))
	return nil
}

func (d *database) evicts(ctx context.Context, _ notes) error {
	old := d.primary()
	err := cluster.Kube.PolicyV1().Evictions(d.namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: old.GetName(), Namespace: d.namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(old.GetUID()))},
	})
	if err != nil {
		return fmt.Errorf("cannot evict pod %s: %w", old.GetName(), err)
	}
	if err := d.succeeded(ctx, old); err != nil {
		return err
	}
	return d.replaced(ctx, "Pod", old)
}
