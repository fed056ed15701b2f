//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// strays: a replica that has a transaction of its own when it starts sets its data aside, with an event, and copies a member.
func (d *database) strays(ctx context.Context, n notes) (err error) {
	old := d.with("replica")[0]
	name := old.GetName()
	like, err := typed(old)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Cordon(context.WithoutCancel(ctx), false)) }()
	if err := cluster.Cordon(ctx, true); err != nil {
		return err
	}
	if err := errors.Join(cluster.Delete(ctx, "Pod", d.namespace, name), d.replaced(ctx, "Pod", old)); err != nil {
		return err
	}
	if err := d.runsOnVolumes(ctx, like, "errant", name); err != nil {
		return err
	}
	start := time.Now()
	if err := cluster.Cordon(ctx, false); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("well after %.0fs", time.Since(start).Seconds())
	want := "volume claim data-" + name + " has transactions that the group does not have, 1 in all: "
	err = harness.Await(ctx, soon, fmt.Sprintf("event %s with %q", appsv1.ReasonDataSetAside, want), func(ctx context.Context) (bool, error) {
		events, err := cluster.Kube.CoreV1().Events(d.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + appsv1.ReasonDataSetAside})
		if err != nil {
			return false, err
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return strings.Contains(e.Message, want) }), nil
	})
	if err != nil {
		return err
	}
	if _, copied, err := d.joins(ctx, start); err != nil || copied != 1 {
		return errors.Join(err, fmt.Errorf("%d servers joined by a copy, want 1", copied))
	}
	aside, err := cluster.Exec(ctx, d.namespace, name, container, nil, "ls", "/var/lib/mysql")
	if err != nil {
		return err
	}
	if !strings.Contains(aside, "data-aside-") {
		return fmt.Errorf("nothing is set aside on the volume of %s: %s", name, aside)
	}
	_, err = cluster.Exec(ctx, d.namespace, name, container, nil, "sh", "-c", "rm -r /var/lib/mysql/data-aside-*")
	return err
}
