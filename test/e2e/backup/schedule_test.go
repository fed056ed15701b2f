//go:build e2e

package backup

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// catchesUp checks that many missed schedules cause only one backup.
func (g *ground) catchesUp(ctx context.Context, n notes) error {
	e := engines[0]
	if err := g.prepared(ctx, e, backupv1.Volume); err != nil {
		return err
	}
	const name, missed = "missed", 100
	if err := g.file(ctx, name, g.parameters(e, backupv1.Volume, func(p *backupv1.BackupParameters) { p.Schedule = "*/20 * * * *" })); err != nil {
		return err
	}
	err := g.awaitBackup(ctx, done, name, "to be Scheduled", func(b backupv1.Backup) bool {
		return b.Status.AtProvider.Phase == backupv1.BackupScheduled && g.world.Get("CronJob", name+"-dump") != nil
	})
	if err != nil {
		return err
	}
	// Pretend that the CronJob ran last a hundred schedules ago.
	last := metav1.NewTime(time.Now().Add(-missed * 20 * time.Minute))
	patch := fmt.Sprintf(`{"status":{"lastScheduleTime":%q}}`, last.UTC().Format(time.RFC3339))
	if _, err := cluster.Kube.BatchV1().CronJobs(g.namespace).Patch(ctx, name+"-dump", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("cannot change the status of CronJob %s: %w", name+"-dump", err)
	}
	err = g.awaitBackup(ctx, done, name, "to make up for what was missed", func(b backupv1.Backup) bool {
		return b.Status.AtProvider.Count > 0 && b.Status.AtProvider.Phase == backupv1.BackupScheduled
	})
	if err != nil {
		return err
	}
	jobs := 0
	for _, k := range g.world.Keys() {
		if k.Kind != "Job" {
			continue
		}
		for _, v := range g.world.History(k.Kind, k.Name)[:1] {
			if v.Object.GetLabels()[backupv1.BackupLabel] == name && v.Object.GetLabels()[backupv1.ActionLabel] == "backup" {
				jobs++
			}
		}
	}
	o := g.backup(name).Status.AtProvider
	n.Addf("%d missed, %d Jobs", missed, jobs)
	// One more Job is started if a schedule falls into the time of this check.
	if jobs > 2 || o.NextScheduleTime == nil || o.NextScheduleTime.Before(new(metav1.NewTime(time.Now().Add(-time.Minute)))) {
		return fmt.Errorf("%d Jobs were started for %d missed schedules, and the next one is %v", jobs, missed, o.NextScheduleTime)
	}
	return g.remove(ctx, name)
}
