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
func (d *database) strays(ctx context.Context, n notes) error {
	name := d.with("replica")[0].GetName()
	folder, err := d.copiesInstead(ctx, n, name, "errant", "has transactions that the group does not have, 1 in all: ", "data-aside-")
	if err != nil {
		return err
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

// decays: a replica that cannot apply what the others send, since it lacks a table, sets its data aside after some attempts, and
// copies a member.
func (d *database) decays(ctx context.Context, n notes) error {
	name := d.with("replica")[0].GetName()
	folder, err := d.copiesInstead(ctx, n, name, "decay", "could not be brought up to date in 5 attempts", "data-failed-")
	if err != nil {
		return err
	}
	_, err = d.inServer(ctx, name, "rm", "-r", folder)
	return err
}

// copiesInstead changes the volume of a replica while that does not run, and waits until it has set its data aside, for a reason,
// and copied a member. It returns the folder with what was set aside, whose name begins with a prefix.
func (d *database) copiesInstead(ctx context.Context, n notes, name, how, why, prefix string) (folder string, err error) {
	old := d.world.Get("Pod", name)
	like, err := typed(old)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, cluster.Cordon(context.WithoutCancel(ctx), false)) }()
	if err := cluster.Cordon(ctx, true); err != nil {
		return "", err
	}
	if err := errors.Join(cluster.Delete(ctx, "Pod", d.namespace, name), d.replaced(ctx, "Pod", old)); err != nil {
		return "", err
	}
	if err := d.runsOnVolumes(ctx, like, how, name); err != nil {
		return "", err
	}
	start := time.Now()
	if err := cluster.Cordon(ctx, false); err != nil {
		return "", err
	}
	if folder, err = d.setAside(ctx, name, why, prefix, start); err != nil {
		return "", err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return "", err
	}
	n.Addf("well after %.0fs", time.Since(start).Seconds())
	if _, copied, err := d.joins(ctx, start); err != nil || copied != 1 {
		return "", errors.Join(err, fmt.Errorf("%d servers joined by a copy, want 1", copied))
	}
	return folder, nil
}

// volumeDir is where a server's volume is mounted.
const volumeDir = "/var/lib/mysql"

// aside finds the folder with what was set aside in the message of an event.
var aside = regexp.MustCompile(`set aside in folder (\S+)`)

// setAside waits for the event by which a server's data was set aside since a time, and why, and returns the folder with it.
func (d *database) setAside(ctx context.Context, server, why, prefix string, since time.Time) (string, error) {
	want, folder := "volume claim data-"+server+" "+why, ""
	err := harness.Await(ctx, settled, fmt.Sprintf("event %s with %q", appsv1.ReasonDataSetAside, want), func(ctx context.Context) (bool, error) {
		events, err := cluster.Kube.CoreV1().Events(d.namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + appsv1.ReasonDataSetAside})
		if err != nil {
			return false, err
		}
		for _, e := range events.Items {
			found := aside.FindStringSubmatch(e.Message)
			if found != nil && strings.HasPrefix(found[1], prefix) && strings.Contains(e.Message, want) && !e.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
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
