//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// losesMajority deletes the primary and another server at once with no grace. The one that is left has no
// majority until they are back.
func (d *database) losesMajority(ctx context.Context, _ notes) error {
	primary, replica := d.primary(), d.with("replica")[0]
	for _, p := range []string{primary.GetName(), replica.GetName()} {
		if err := d.deletePod(ctx, d.world.Get("Pod", p)); err != nil {
			return err
		}
	}
	return errors.Join(d.replaced(ctx, "Pod", primary), d.replaced(ctx, "Pod", replica))
}

// losesAllAfterFailover deletes all pods with no grace as soon as another server leads: it has received
// nothing from a primary yet since then.
func (d *database) losesAllAfterFailover(ctx context.Context, n notes) error {
	if err := d.losesPrimary(ctx, n); err != nil {
		return err
	}
	return d.losesAll(ctx, n)
}

// leavesOneByOne ends one replica after the other, each in order, and none comes back. With each one that leaves, the majority of
// the others is smaller, so that the last one still takes writes: what it acknowledges no other server has. So the claim
// says which server is missing, and then that there is only one.
func (d *database) leavesOneByOne(ctx context.Context, n notes) (err error) {
	replicas := d.with("replica")
	defer func() { err = errors.Join(err, cluster.Cordon(context.WithoutCancel(ctx), false)) }()
	if err := cluster.Cordon(ctx, true); err != nil {
		return err
	}
	for i, p := range replicas {
		want := "Not following the primary: " + p.GetName()
		if i == len(replicas)-1 {
			want = "writes are on one server only"
		}
		start := time.Now()
		if err := cluster.Delete(ctx, "Pod", d.namespace, p.GetName()); err != nil {
			return err
		}
		err := d.world.Await(ctx, settled, fmt.Sprintf("the claim to report %q", want), func() (bool, string) {
			c := d.status()
			return c.Status.Phase == appsv1.PhaseDegraded && strings.Contains(c.Condition("ReplicationHealthy").Message, want), c.String()
		})
		if err != nil {
			return err
		}
		n.Addf("%q reported after %.0fs", want, time.Since(start).Seconds())
		now, err := d.ledger.Mark(ctx)
		if err != nil {
			return err
		}
		if err := d.ledger.Flows(ctx, soon, now); err != nil {
			return err
		}
	}
	return nil
}

// emptyAndLost: a group without any data of users comes back after all its pods were lost.
func (d *database) emptyAndLost(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	start := time.Now()
	if err := d.losesAll(ctx, n); err != nil {
		return err
	}
	err := d.whole(ctx, baseSize)
	n.Addf("well after %.0fs", time.Since(start).Seconds())
	return err
}

// endsWithin is how soon a pod has to end whose grace period is two minutes.
const endsWithin = time.Minute

// endsUnacknowledged ends the primary's pod while no other server answers, so that commits wait. It ends
// within its grace period all the same, and the group goes on once the others are back.
func (d *database) endsUnacknowledged(ctx context.Context, n notes) error {
	old := d.primary()
	var errs []error
	frozen := d.others(old)
	for _, p := range frozen {
		_, err := harness.Signal(p, syscall.SIGSTOP, container)
		errs = append(errs, err)
	}
	defer func() {
		for _, p := range frozen {
			_, _ = harness.Signal(p, syscall.SIGCONT, container)
		}
	}()
	if err := errors.Join(errs...); err != nil {
		return unlessNode(err)
	}
	// A commit waits by now.
	if err := harness.Until(ctx, time.Now().Add(time.Second)); err != nil {
		return err
	}
	start := time.Now()
	if err := cluster.Kube.CoreV1().Pods(d.namespace).Delete(ctx, old.GetName(), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", old.GetName(), err)
	}
	if err := harness.Until(ctx, time.Now().Add(hungFor)); err != nil {
		return err
	}
	for _, p := range frozen {
		_, err := harness.Signal(p, syscall.SIGCONT, container)
		errs = append(errs, unlessNode(err))
	}
	err := d.replaced(ctx, "Pod", old)
	took := time.Since(start)
	n.Addf("ended after %.0fs", took.Seconds())
	if took > endsWithin {
		// It was killed, which is not until its grace period is over.
		err = errors.Join(err, fmt.Errorf("the primary's pod ended after %.0f s, and has %.0f s", took.Seconds(), endsWithin.Seconds()))
	}
	return errors.Join(append(errs, err)...)
}

// How MySQL's log says that a server joined a group: by what it lacked, or by a copy of another server.
const (
	byIncrements = "Distributed recovery will transfer data using: Incremental recovery"
	byCopy       = "Distributed recovery will transfer data using: Cloning"
)

// joins returns how many servers joined the group since a moment, by what they lacked and by a copy.
func (d *database) joins(ctx context.Context, since time.Time) (incremental, copied int, err error) {
	for _, p := range d.pods() {
		log, err := d.log(ctx, p.GetName(), since)
		if err != nil {
			return 0, 0, err
		}
		incremental, copied = incremental+strings.Count(log, byIncrements), copied+strings.Count(log, byCopy)
	}
	return incremental, copied, nil
}

// log returns what a server has logged since a time, also before it was started again.
func (d *database) log(ctx context.Context, pod string, since time.Time) (string, error) {
	var log strings.Builder
	for _, previous := range []bool{false, true} {
		options := &corev1.PodLogOptions{Container: container, SinceTime: new(metav1.NewTime(since)), Previous: previous}
		raw, err := cluster.Kube.CoreV1().Pods(d.namespace).GetLogs(pod, options).DoRaw(ctx)
		if err != nil && previous {
			// The container has not restarted.
			continue
		}
		if err != nil {
			return "", fmt.Errorf("cannot read the log of pod %s: %w", pod, err)
		}
		log.Write(raw)
	}
	return log.String(), nil
}
