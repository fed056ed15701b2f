//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// aloneFor is several times as long as Patroni needs to notice that it has no standby, and
// aloneAfter is when it must have noticed.
const (
	aloneFor   = 30 * time.Second
	aloneAfter = 12 * time.Second
)

func (d *database) losesAllStandbys(ctx context.Context, n notes) error {
	for _, mode := range []string{"quorum", "strict"} {
		if err := d.under(noTarget, d.losesStandbys(mode))(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	return nil
}

// losesStandbys deletes all standbys and prevents new ones for a time: strict blocks writes, with
// quorum they continue.
func (d *database) losesStandbys(mode string) event {
	return func(ctx context.Context, n notes) (err error) {
		if err := d.change(ctx, harness.Patch{"synchronousMode": mode}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.change(ctx, harness.Patch{"synchronousMode": nil})) }()
		if err := d.follows(ctx, mode == "strict"); err != nil {
			return err
		}
		free, err := d.takesNoPods(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, free(context.WithoutCancel(ctx))) }()

		start := time.Now()
		primary := d.primary()
		for _, p := range d.pods() {
			if p.GetName() == primary.GetName() {
				continue
			}
			if err := d.deletePod(ctx, p, new(int64(0))); err != nil {
				return err
			}
		}
		if err := harness.Until(ctx, start.Add(aloneAfter)); err != nil {
			return err
		}
		from, err := d.ledger.Mark(ctx)
		if err != nil {
			return err
		}
		if err := harness.Until(ctx, start.Add(aloneFor)); err != nil {
			return err
		}
		to, err := d.ledger.Mark(ctx)
		if err != nil {
			return err
		}
		rows := to.Acknowledged - from.Acknowledged
		n.Addf("%s: %d rows in %.0fs without a standby", mode, rows, (aloneFor - aloneAfter).Seconds())
		if wrote := rows > 0; wrote == (mode == "strict") {
			return fmt.Errorf("in mode %s %d rows were acknowledged while there was no standby", mode, rows)
		}
		return d.says(ctx, soon, "No synchronous standby")
	}
}

// follows waits until Patroni's configuration has the mode.
func (d *database) follows(ctx context.Context, strict bool) error {
	return d.world.Await(ctx, soon, fmt.Sprintf("synchronous_mode_strict to be %t", strict), func() (bool, string) {
		c := d.world.Get("ConfigMap", setName+"-config")
		if c == nil {
			return false, "there is no such ConfigMap"
		}
		have := c.GetAnnotations()["config"]
		return strings.Contains(have, fmt.Sprintf(`"synchronous_mode_strict":%t`, strict)), have
	})
}

// takesNoPods prevents new pods in the namespace until free is called.
func (d *database) takesNoPods(ctx context.Context) (free func(context.Context) error, err error) {
	quotas := cluster.Kube.CoreV1().ResourceQuotas(d.namespace)
	const name = "no-more-pods"
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if _, err := quotas.Create(ctx, q, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("cannot create ResourceQuota %s: %w", name, err)
	}
	free = func(ctx context.Context) error {
		if err := quotas.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("cannot delete ResourceQuota %s: %w", name, err)
		}
		return nil
	}
	// The API server enforces the quota once its usage has been counted.
	err = harness.Await(ctx, soon, "the quota to be counted", func(ctx context.Context) (bool, error) {
		q, err := quotas.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return len(q.Status.Hard) > 0, errors.New("it has no status")
	})
	if err != nil {
		return nil, errors.Join(err, free(ctx))
	}
	return free, nil
}
