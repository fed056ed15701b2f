//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// oneWins checks that of two Restores into one empty database one completes, and the other one is
// refused and changes nothing.
func (g *ground) oneWins(ctx context.Context, n notes) error {
	for _, e := range engines {
		name := "two-" + string(e.name)
		if err := g.backedUp(ctx, e, name); err != nil {
			return err
		}
		both := []string{name + "-first", name + "-second"}
		for _, r := range both {
			if err := g.restoreFile(ctx, r, e, from(name), false); err != nil {
				return err
			}
		}
		won := 0
		for _, name := range both {
			r, err := g.restored(ctx, done, name)
			if err != nil {
				return err
			}
			f := r.Status.AtProvider.Failure
			switch {
			case f == nil:
				won++
			case f.Reason != "TargetLocked" && f.Reason != "TargetNotEmpty":
				return fmt.Errorf("restore %s lost because of %s: %s", name, f.Reason, f.Message)
			default:
				n.Addf("%s: %s", e.name, f.Reason)
			}
		}
		if won != 1 {
			return fmt.Errorf("%d of two Restores into one database of type %s completed", won, e.name)
		}
		if err := g.same(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// goesOn checks that a Restore whose pod is killed continues in another pod.
func (g *ground) goesOn(ctx context.Context, _ notes) error {
	e := engines[0]
	const name = "goes-on"
	if err := g.backedUp(ctx, e, name); err != nil {
		return err
	}
	if err := g.restoreFile(ctx, name, e, from(name), false); err != nil {
		return err
	}
	killed := ""
	err := g.world.Await(ctx, done, "a pod of Restore "+name+" that runs", func() (bool, string) {
		for _, p := range g.pods(backupv1.RestoreLabel, name) {
			if harness.Field(g.world.Get("Pod", p), "status", "phase") == "Running" {
				killed = p
			}
		}
		return killed != "", g.restore(name).Status.AtProvider.Message
	})
	if err != nil {
		return err
	}
	if err := cluster.Kube.CoreV1().Pods(g.namespace).Delete(ctx, killed, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", killed, err)
	}
	if _, err := g.completed(ctx, name); err != nil {
		return err
	}
	return g.same(ctx, e)
}

// leavesRepository checks that the deletion of a Backup with the cluster's name, whose backups are
// stored beside the cluster's repository, deletes nothing of the repository.
func (d *timed) leavesRepository(ctx context.Context, n notes) error {
	if err := d.claimed(ctx); err != nil {
		return err
	}
	// The Backup reports the location of the repository with the first backup.
	if err := d.counts(ctx, 1); err != nil {
		return err
	}
	before, err := d.all(ctx, d.store, d.backup(ledgerBackup).Status.AtProvider.Location)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return errors.New("the cluster has no repository, so this shows nothing")
	}
	p := d.parameters(engines[0], d.store, emptied)
	p.Source = backupv1.Database{Type: backupv1.PostgreSQL, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: ledgerName}}}
	if err := d.file(ctx, ledgerName, p); err != nil {
		return err
	}
	if _, err := d.succeed(ctx, ledgerName); err != nil {
		return err
	}
	if err := d.remove(ctx, ledgerName); err != nil {
		return err
	}
	after, err := d.all(ctx, d.store, d.backup(ledgerBackup).Status.AtProvider.Location)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, f := range after {
		have[f] = true
	}
	for _, f := range before {
		if !have[f] {
			return fmt.Errorf("file %s of the repository is gone", f)
		}
	}
	n.Addf("%d files of the repository are there", len(after))
	return d.healthy(ctx)
}
