//go:build e2e

package backup

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// losesRepository removes all objects of the repository of a running cluster. It checks that the
// claim reports it, that a backup begins automatically, and that all rows can be restored from
// that.
func (d *timed) losesRepository(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	before := d.backup(ledgerBackup).Status.AtProvider
	if before.Location == "" {
		return errors.New("the Backup does not say where its repository is")
	}
	begin := time.Now()
	if _, err := d.on(ctx, string(d.store), "rm", path.Join(bucketFolder, before.Location)); err != nil {
		return err
	}
	// Rows that are not in the removed archive.
	if err := d.write(ctx, 1); err != nil {
		return err
	}
	// The message lasts for as long as a backup takes.
	const words = "The repository holds no backup"
	err := d.world.Await(ctx, givenUp, "ArchivingHealthy to be False with "+words, func() (bool, string) {
		c := d.world.Claim("DatabaseCluster", ledgerName)
		a := c.Condition("ArchivingHealthy")
		return a.Status == metav1.ConditionFalse && a.Reason == "ArchiveGap" && strings.Contains(a.Message, words), c.String()
	})
	if err != nil {
		return err
	}
	n.Addf("reported after %.0fs", time.Since(begin).Seconds())
	err = d.awaitBackup(ctx, givenUp, ledgerBackup, "to have a new backup that was not requested", func(b backupv1.Backup) bool {
		return slices.ContainsFunc(ids(b.Status.AtProvider), func(id string) bool { return !slices.Contains(ids(before), id) })
	})
	if err != nil {
		return err
	}
	// The backup that was verified before is gone.
	if _, err := d.annotate(ctx, ledgerBackup, backupv1.VerifyNowAnnotation); err != nil {
		return err
	}
	err = d.awaitBackup(ctx, givenUp, ledgerBackup, "to have a verified backup again", func(b backupv1.Backup) bool {
		o := b.Status.AtProvider
		return is(b, "Verified", "True", "") && o.LastVerified != "" && !slices.Contains(ids(before), o.LastVerified)
	})
	if err != nil {
		return err
	}
	if err := d.healthy(ctx); err != nil {
		return err
	}
	n.Addf("healthy again after %.0fs", time.Since(begin).Seconds())
	if err := d.write(ctx, 1); err != nil {
		return err
	}
	if err := d.archived(ctx); err != nil {
		return err
	}
	return d.filled(ctx, "found", d.rows, map[string]any{"backupRef": map[string]any{"name": ledgerBackup}})
}
