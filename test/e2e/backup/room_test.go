//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// smallName of the database whose backups fill their volume, and of that.
const smallName = "small"

// heals: backups and WAL fill a volume, so that nothing is archived any more. The
// next backup has the oldest expire, succeeds, and so does archiving.
func (d *timed) heals(ctx context.Context, n notes) (err error) {
	if err := d.ready(ctx); err != nil {
		return err
	}
	folder, err := smallVolume()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.unmount(context.WithoutCancel(ctx), folder)) }()
	if err := d.small(ctx, folder); err != nil {
		return err
	}
	const own = smallName + "-backup"
	count := func(n int32) error {
		return d.awaitBackup(ctx, givenUp, own, fmt.Sprintf("to have %d backups", n), func(b backupv1.Backup) bool { return b.Status.AtProvider.Count == n })
	}
	if err := count(1); err != nil {
		return err
	}
	first := ids(d.backup(own).Status.AtProvider)[0]
	// What expires with the first backup has to be more than a segment or two.
	if err := d.noise(ctx, 3); err != nil {
		return err
	}
	if err := d.start(ctx, smallName+"-backup-full", "room-1"); err != nil {
		return err
	}
	if err := count(2); err != nil {
		return err
	}
	if err := d.overflows(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if err := d.start(ctx, smallName+"-backup-full", "room-2"); err != nil {
		return err
	}
	err = d.awaitBackup(ctx, givenUp, own, "to have had the oldest expire for another", func(b backupv1.Backup) bool {
		o := b.Status.AtProvider
		return o.Count == 2 && !slices.Contains(ids(o), first) && o.LastFailure == nil
	})
	if err != nil {
		return err
	}
	n.Addf("room after %.0fs", time.Since(begin).Seconds())
	return d.world.Await(ctx, givenUp, "BackupHealthy and ArchivingHealthy", func() (bool, string) {
		c := d.world.Claim("DatabaseCluster", smallName)
		return c.Is("BackupHealthy") && c.Is("ArchivingHealthy"), c.String()
	})
}

// smallVolume of the node's memory. These tests run on the node.
func smallVolume() (string, error) {
	folder, err := os.MkdirTemp("", "e2e-small")
	if err != nil {
		return "", fmt.Errorf("cannot make a folder: %w", err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=160m,mode=0777"); err != nil {
		return "", errors.Join(fmt.Errorf("cannot mount a small volume, which root can on the node: %w", err), os.Remove(folder))
	}
	return folder, nil
}

// small database, and its volume.
func (d *timed) small(ctx context.Context, folder string) error {
	nodes, err := cluster.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		return fmt.Errorf("cannot list nodes: %w", err)
	}
	objects, err := manifests.ReadAll("backup/small.yaml", map[string]string{
		"NAME": smallName, "NAMESPACE": d.namespace, "VOLUME": filepath.Base(folder), "FOLDER": folder, "NODE": nodes.Items[0].Labels["kubernetes.io/hostname"],
	})
	if err != nil {
		return err
	}
	for _, u := range objects {
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	return d.world.AwaitReady(ctx, givenUp, "DatabaseCluster", smallName)
}

// unmount the volume, once nothing uses it.
func (d *timed) unmount(ctx context.Context, folder string) error {
	err := d.deleted(ctx, smallName)
	if err == nil {
		err = cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, smallName)
	}
	err = errors.Join(err, d.world.Await(ctx, done, "no pod of "+smallName, func() (bool, string) {
		for _, p := range d.world.List("Pod") {
			if strings.HasPrefix(p.GetName(), smallName+"-") {
				return false, p.GetName() + " is there"
			}
		}
		return true, ""
	}))
	volumes := cluster.Kube.CoreV1().PersistentVolumes()
	return errors.Join(err, volumes.Delete(ctx, filepath.Base(folder), metav1.DeleteOptions{}), syscall.Unmount(folder, syscall.MNT_DETACH), os.Remove(folder))
}

// noise of so many segments of WAL that no compression makes smaller, and none of
// it stays.
func (d *timed) noise(ctx context.Context, segments int) error {
	const pod = smallName + "-postgresql-0"
	for range segments {
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS noise (b bytea)",
			`INSERT INTO noise SELECT (SELECT decode(string_agg(replace(gen_random_uuid()::text, '-', ''), ''), 'hex') FROM generate_series(1, 64) WHERE i > 0) FROM generate_series(1, 14000) i`,
			"TRUNCATE noise", "SELECT pg_switch_wal()",
		} {
			if _, err := d.psql(ctx, pod, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// overflows the volume with WAL, until none is archived any more.
func (d *timed) overflows(ctx context.Context) error {
	const pod, most = smallName + "-postgresql-0", 40
	for range most {
		out, err := d.psql(ctx, pod, "SELECT failed_count FROM pg_stat_archiver WHERE last_failed_time > coalesce(last_archived_time, '-infinity')")
		if err != nil {
			return err
		}
		if failed := strings.TrimSpace(out); failed != "" && failed != "0" {
			return d.world.Await(ctx, done, "ArchivingHealthy to be False", func() (bool, string) {
				c := d.world.Claim("DatabaseCluster", smallName)
				return c.Condition("ArchivingHealthy").Status == metav1.ConditionFalse, harness.Field(d.world.Get("DatabaseCluster", smallName), "status", "message")
			})
		}
		if err := d.noise(ctx, 1); err != nil {
			return err
		}
	}
	return fmt.Errorf("the volume is not full after %d segments", most)
}
