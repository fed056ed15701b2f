//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

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
	folder, err := d.setAside(ctx, name, start)
	if err != nil {
		return err
	}
	if _, copied, err := d.joins(ctx, start); err != nil || copied != 1 {
		return errors.Join(err, fmt.Errorf("%d servers joined by a copy, want 1", copied))
	}
	if _, err := d.inServer(ctx, name, "ls", folder+"/errant"); err != nil {
		return fmt.Errorf("what was set aside has no database errant: %w", err)
	}
	for _, p := range d.pods() {
		databases, err := d.inServer(ctx, p.GetName(), "ls", volumeDir+"/data")
		if err != nil {
			return err
		}
		if slices.Contains(strings.Fields(databases), "errant") {
			return fmt.Errorf("pod %s has database errant", p.GetName())
		}
	}
	_, err = d.inServer(ctx, name, "rm", "-r", folder)
	return err
}

// volumeDir is where a server's volume is mounted.
const volumeDir = "/var/lib/mysql"

// aside finds the folder with what was set aside in the message of an event.
var aside = regexp.MustCompile(`set aside in folder (data-aside-\S+)`)

// setAside waits for the event by which a server's data was set aside since a time, and returns the folder with it.
func (d *database) setAside(ctx context.Context, server string, since time.Time) (string, error) {
	want, folder := "volume claim data-"+server+" has transactions that the group does not have, 1 in all: ", ""
	err := harness.Await(ctx, soon, fmt.Sprintf("event %s with %q", appsv1.ReasonDataSetAside, want), func(ctx context.Context) (bool, error) {
		events, err := cluster.Kube.CoreV1().Events(d.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + appsv1.ReasonDataSetAside})
		if err != nil {
			return false, err
		}
		for _, e := range events.Items {
			found := aside.FindStringSubmatch(e.Message)
			if found != nil && strings.Contains(e.Message, want) && !e.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
				folder = volumeDir + "/" + strings.TrimRight(found[1], ".")
			}
		}
		return folder != "", nil
	})
	return folder, err
}

// inServer runs a command beside a server.
func (d *database) inServer(ctx context.Context, pod string, command ...string) (string, error) {
	return cluster.Exec(ctx, d.namespace, pod, container, nil, command...)
}
