//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// smallName is the name of the database whose backups fill their volume, and of the volume.
const smallName = "small"

// heals fills a volume with backups and WAL until nothing can be archived. It checks that a backup
// begins automatically, that the oldest one expires for it, and that backup and archiving then
// succeed.
func (d *timed) heals(ctx context.Context, n notes) (err error) {
	if err := d.ready(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.unsmall(context.WithoutCancel(ctx))) }()
	if err := d.small(ctx); err != nil {
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
	// More than one or two segments have to expire with the first backup.
	if err := d.noise(ctx, 3); err != nil {
		return err
	}
	if err := d.start(ctx, smallName+"-backup-full", "room-1"); err != nil {
		return err
	}
	if err := count(2); err != nil {
		return err
	}
	// The newest verified backup never expires. Until the second one is verified, which would take
	// up to a week, that is the first one.
	verified := func(which string, ok func(id string) bool) error {
		return d.awaitBackup(ctx, givenUp, own, "to have its "+which+" backup verified", func(b backupv1.Backup) bool { return ok(b.Status.AtProvider.LastVerified) })
	}
	if err := verified("first", func(id string) bool { return id == first }); err != nil {
		return err
	}
	if err := d.start(ctx, own+"-verify", "room-verify"); err != nil {
		return err
	}
	if err := verified("second", func(id string) bool { return id != "" && id != first }); err != nil {
		return err
	}
	if err := d.overflows(ctx); err != nil {
		return err
	}
	begin := time.Now()
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

// small creates a database whose backups go to a volume of 160 MiB.
func (d *timed) small(ctx context.Context) error {
	if err := d.create(ctx, "backup/volume.yaml", map[string]string{"NAME": smallName}); err != nil {
		return err
	}
	// The volume is provisioned for its first pod.
	const user = smallName + "-volume"
	if err := d.create(ctx, "backup/user.yaml", map[string]string{"NAME": user, "VOLUME": smallName}); err != nil {
		return err
	}
	err := d.world.Await(ctx, started, "pod "+user+" to end", func() (bool, string) {
		phase := harness.Field(d.world.Get("Pod", user), "status", "phase")
		return phase == "Succeeded", "it is " + phase
	})
	if err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Pod", d.namespace, user); err != nil {
		return err
	}
	if err := d.world.AwaitGone(ctx, started, "Pod", user); err != nil {
		return err
	}
	path, err := cluster.VolumePath(ctx, d.namespace, smallName)
	if err != nil {
		return err
	}
	if err := harness.Shrink(ctx, path, 160); err != nil {
		return err
	}
	if err := d.create(ctx, "backup/small.yaml", map[string]string{"NAME": smallName}); err != nil {
		return err
	}
	return d.world.AwaitReady(ctx, givenUp, "DatabaseCluster", smallName)
}

// unsmall deletes the database, and the disk of its volume once no pod uses it.
func (d *timed) unsmall(ctx context.Context) error {
	err := d.deleted(ctx, smallName)
	err = errors.Join(err, d.world.Await(ctx, done, "no pod of "+smallName, func() (bool, string) {
		for _, p := range d.world.List("Pod") {
			if strings.HasPrefix(p.GetName(), smallName+"-") {
				return false, p.GetName() + " is there"
			}
		}
		return true, ""
	}))
	return errors.Join(err, harness.Unshrink(), cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, smallName))
}

// noise writes so many segments of incompressible WAL, of which no table data stays.
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

// overflows fills the volume with WAL until no more is archived.
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
