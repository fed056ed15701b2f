//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// comesBackOtherwise checks that over retained volumes the server with the newest data becomes
// primary, whatever the size of the new claim.
func (d *database) comesBackOtherwise(ctx context.Context, n notes) error {
	_, err := d.account(ctx, n, noTarget, func(ctx context.Context, _ notes) error { return d.switchover(ctx, server(baseSize-1)) })
	if err != nil {
		return err
	}
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	before, err := d.ask(ctx, "app", countLedger)
	if err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, 1, countLedger, before); err != nil {
		return fmt.Errorf("smaller, with the primary's volume beyond: %w", err)
	}
	// From here on the volumes of the other servers are stale.
	const count = "SELECT count(*) FROM kept"
	if _, err := d.ask(ctx, "app", "CREATE TABLE kept AS SELECT generate_series(1, 1000)"); err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, baseSize, count, "1000"); err != nil {
		return fmt.Errorf("larger, with stale volumes: %w", err)
	}
	if err := d.reclaims(ctx, n, baseSize, count, "1000", server(1), server(2)); err != nil {
		return fmt.Errorf("larger, with one volume: %w", err)
	}
	if _, err := d.ask(ctx, "app", "DROP TABLE kept"); err != nil {
		return err
	}
	return d.keepLedger(ctx)
}

// leadsOlder checks that, if the newest volume is lost, a server becomes primary that does not have
// the latest timelines of the archive. No history in the archive may be overwritten, and archiving
// continues.
func (d *database) leadsOlder(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	const count = "SELECT count(*) FROM older"
	if _, err := d.ask(ctx, "app", "CREATE TABLE older AS SELECT generate_series(1, 1000)"); err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, 1, count, "1000"); err != nil {
		return fmt.Errorf("with one server: %w", err)
	}
	left, err := d.segment(ctx)
	if err != nil {
		return err
	}
	if err := d.hasArchive(ctx, left.Number); err != nil {
		return fmt.Errorf("before the volume is lost: %w", err)
	}
	histories, err := d.histories(ctx)
	if err != nil {
		return err
	}
	if err := d.reclaims(ctx, n, baseSize, count, "1000", server(0)); err != nil {
		return fmt.Errorf("with the volumes that are left: %w", err)
	}
	now, err := d.segment(ctx)
	if err != nil {
		return err
	}
	n.Addf("left on timeline %d, leads on %d", left.Timeline, now.Timeline)
	if now.Timeline <= left.Timeline {
		return fmt.Errorf("it leads on timeline %d, and the archive knows %d", now.Timeline, left.Timeline)
	}
	if err := d.hasArchive(ctx, now.Number); err != nil {
		return err
	}
	after, err := d.histories(ctx)
	if err != nil {
		return err
	}
	for file, content := range histories {
		if after[file] != content {
			return fmt.Errorf("history %s in the archive was %q, and is %q", file, content, after[file])
		}
	}
	err = d.world.Await(ctx, settled, "ArchivingHealthy and BackupHealthy", func() (bool, string) {
		c := d.status()
		return c.Is("ArchivingHealthy") && c.Is("BackupHealthy"), c.String()
	})
	if err != nil {
		return err
	}
	if _, err := d.ask(ctx, "app", "DROP TABLE older"); err != nil {
		return err
	}
	return d.keepLedger(ctx)
}

// reclaims deletes the claim, and the volumes of some servers, and applies it again with another
// size.
func (d *database) reclaims(ctx context.Context, n notes, size int, count, least string, lost ...string) error {
	if _, err := d.end(ctx, stays(d.volumes())...); err != nil {
		return err
	}
	for _, s := range lost {
		if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, "data-"+s); err != nil {
			return err
		}
		if err := d.world.AwaitGone(ctx, soon, "PersistentVolumeClaim", "data-"+s); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := d.fileOf(ctx, size); err != nil {
		return err
	}
	if err := d.whole(ctx, size); err != nil {
		return err
	}
	n.Addf("%d servers after %.1fs", size, time.Since(start).Seconds())
	have, err := d.ask(ctx, "app", count)
	if err != nil {
		return err
	}
	if kept, err := atLeast(have, least); err != nil || !kept {
		return errors.Join(err, fmt.Errorf("there were %s rows, and are %s", least, have))
	}
	return nil
}

// fileOf applies the claim with a size.
func (d *database) fileOf(ctx context.Context, size int) error {
	u, err := manifests.Read(d.manifest, map[string]string{"NAMESPACE": d.namespace})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, int64(size), "spec", "size"); err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// wakesSmaller hibernates the database, and wakes it with one server, while the primary's volume
// belongs to a server that is removed.
func (d *database) wakesSmaller(ctx context.Context, _ notes) error {
	if err := d.switchover(ctx, server(baseSize-1)); err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"hibernated": true, "size": 1}); err != nil {
		return err
	}
	err := d.world.Await(ctx, settled, "the claim to hibernate", func() (bool, string) {
		c := d.status()
		return c.Status.Phase == "Hibernated" && len(d.pods()) == 0, fmt.Sprintf("there are %d pods; %s", len(d.pods()), c)
	})
	if err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	return d.whole(ctx, 1)
}

// The folder of the data, and a file name in it at which pg_rewind fails if it is a folder on one
// server.
const (
	volumeDir = "/var/lib/postgresql/data"
	obstacle  = volumeDir + "/pgdata/e2e-obstacle"
)

// failsToRewind checks that a server that cannot be rewound copies the primary, and that its old
// data is set aside.
func (d *database) failsToRewind(ctx context.Context, n notes) error {
	old := d.primary()
	manager := func(pod string, command ...string) (string, error) {
		return cluster.Exec(ctx, d.namespace, pod, "instance", nil, command...)
	}
	for _, p := range d.pods() {
		create := "touch"
		if p.GetName() == old.GetName() {
			create = "mkdir"
		}
		if _, err := manager(p.GetName(), create, obstacle); err != nil {
			return err
		}
	}
	if err := d.freezes(ctx, n); err != nil {
		return err
	}
	out, err := manager(old.GetName(), "ls", volumeDir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(strings.Fields(out), func(f string) bool { return strings.HasPrefix(f, "pgdata-rewind-") })
	if i < 0 {
		return fmt.Errorf("nothing is set aside on the volume of %s: %s", old.GetName(), out)
	}
	aside := volumeDir + "/" + strings.Fields(out)[i]
	if _, err := manager(old.GetName(), "ls", aside+"/global/pg_control"); err != nil {
		return err
	}
	if _, err := manager(old.GetName(), "rm", "-r", aside); err != nil {
		return err
	}
	for _, p := range d.pods() {
		if _, err := manager(p.GetName(), "rm", "-rf", obstacle); err != nil {
			return err
		}
	}
	return nil
}
