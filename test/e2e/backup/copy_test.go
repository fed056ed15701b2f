//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// Names of a cluster that is restored from the ledger's backups and has backups of its own in the
// same store.
const (
	copyName   = "copy"
	copyBackup = copyName + "-backup"
	copyServer = copyName + "-postgresql-0"
)

// Rows of the copy that the ledger does not have.
const (
	firstBeside = 1000001 + iota
	secondBeside
	thirdBeside
)

// copied waits until the copy is Ready, and creates it with a backup if it does not exist.
func (d *timed) copied(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	if d.world.Get("DatabaseCluster", copyName) != nil {
		return d.world.AwaitReady(ctx, done, "DatabaseCluster", copyName)
	}
	return d.copies(ctx)
}

// copies creates a copy of the ledger at its present state, and waits until it has a backup of its
// own.
func (d *timed) copies(ctx context.Context) error {
	if err := d.archived(ctx); err != nil {
		return err
	}
	if err := d.claimCopy(ctx); err != nil {
		return err
	}
	if err := d.archives(ctx, copyName); err != nil {
		return err
	}
	return d.awaitBackup(ctx, givenUp, copyBackup, "to have a backup of its own place", func(b backupv1.Backup) bool {
		return b.Status.AtProvider.Count > 0 && b.Status.AtProvider.SystemIdentifier != ""
	})
}

// claimCopy applies the claim of the copy and waits until it is Ready.
func (d *timed) claimCopy(ctx context.Context) error {
	u, err := manifests.Read("backup/postgresql.yaml", map[string]string{"NAME": copyName, "NAMESPACE": d.namespace, "RESTORE": "restoreFrom: {backupRef: {name: " + ledgerBackup + "}}"})
	if err != nil {
		return err
	}
	spec := u.Object["spec"].(map[string]any)
	spec["backup"] = map[string]any{"enabled": true, "destination": d.place()}
	spec["parameters"] = map[string]any{"archive_timeout": "20"}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	return d.world.AwaitReady(ctx, givenUp, "DatabaseCluster", copyName)
}

// put inserts a row into the copy and waits until the row is in the copy's archive.
func (d *timed) put(ctx context.Context, row int) error {
	if _, err := d.data(ctx, d.uri(engines[0], copyName), "exec", "postgresql", fmt.Sprintf("INSERT INTO seen VALUES (%d)", row)); err != nil {
		return err
	}
	_, err := d.archivedOn(ctx, copyServer)
	return err
}

// parts returns what must not change in an adoption of the copy: pods and volume claims with their
// UIDs, Secrets with their data.
func (d *timed) parts() map[string]string {
	out := map[string]string{}
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "Secret"} {
		for _, u := range d.world.List(kind) {
			l := u.GetLabels()
			// The Secret for the source of the restore is removed together with the restore.
			if l["app.kubernetes.io/instance"] != copyName || kind == "Pod" && l[roleLabel] == "" || u.GetName() == copyName+"-source" {
				continue
			}
			is := string(u.GetUID())
			if kind == "Secret" {
				is = fmt.Sprint(u.Object["data"])
			}
			out[kind+" "+u.GetName()] = is
		}
	}
	return out
}

// isAdopted checks that nothing changes if the claim of a restored cluster is deleted alone and
// applied again, as a backup tool or GitOps does, and that its server can start again afterwards.
func (d *timed) isAdopted(ctx context.Context, n notes) error {
	if err := d.copied(ctx, n); err != nil {
		return err
	}
	before := d.parts()
	if len(before) < 3 {
		return fmt.Errorf("the copy has only %v, so this shows nothing", slices.Sorted(maps.Keys(before)))
	}
	uri := d.uri(engines[0], copyName)
	count := func() (string, error) { return d.data(ctx, uri, "exec", "postgresql", "SELECT count(*) FROM seen") }
	rows, err := count()
	if err != nil {
		return err
	}
	if err := cluster.Orphan(ctx, d.world, "DatabaseCluster", d.namespace, copyName); err != nil {
		return err
	}
	if err := d.world.AwaitGone(ctx, done, "DatabaseCluster", copyName); err != nil {
		return err
	}
	if err := d.claimCopy(ctx); err != nil {
		return err
	}
	var errs []error
	after := d.parts()
	for _, part := range slices.Sorted(maps.Keys(before)) {
		// The values of a Secret must not appear in a report.
		if after[part] != before[part] {
			errs = append(errs, fmt.Errorf("%s is gone, or not the one that was there", part))
		}
	}
	if now, err := count(); err != nil || strings.TrimSpace(now) != strings.TrimSpace(rows) {
		errs = append(errs, err, fmt.Errorf("there were %q rows, and are %q", rows, now))
	}
	if err := errors.Join(append(errs, d.archives(ctx, copyName))...); err != nil {
		return err
	}
	n.Addf("%d parts as they were", len(before))

	old := d.world.Get("Pod", copyServer)
	if err := cluster.Kube.CoreV1().Pods(d.namespace).Delete(ctx, copyServer, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", copyServer, err)
	}
	err = d.world.Await(ctx, started, "the adopted cluster's server to start in another pod", func() (bool, string) {
		p := d.world.Get("Pod", copyServer)
		return p != nil && p.GetUID() != old.GetUID() && p.GetLabels()[roleLabel] == "primary" && harness.ClaimOf(p).Is("Ready"), d.world.Claim("DatabaseCluster", copyName).String()
	})
	if err != nil {
		return err
	}
	if err := d.world.AwaitReady(ctx, done, "DatabaseCluster", copyName); err != nil {
		return err
	}
	// The pod has the label of a primary before it is promoted.
	err = d.world.Await(ctx, started, "the adopted cluster to take writes", func() (bool, string) {
		err := d.put(ctx, firstBeside)
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	return d.archives(ctx, copyName)
}

// restoresAgain checks a copy that is deleted with its volumes and restored again under the same
// name: it archives beside the first one, and a restore from its own backups contains what was
// written to it.
func (d *timed) restoresAgain(ctx context.Context, n notes) error {
	if err := d.copied(ctx, n); err != nil {
		return err
	}
	// The first copy writes to the same timeline as the second one will.
	if err := d.put(ctx, secondBeside); err != nil {
		return err
	}
	before := d.backup(copyBackup).Status.AtProvider.SystemIdentifier
	if err := d.ends(ctx); err != nil {
		return err
	}
	if err := d.copies(ctx); err != nil {
		return err
	}
	now := d.backup(copyBackup).Status.AtProvider.SystemIdentifier
	if now == before {
		return fmt.Errorf("the second copy archives to %s, as the first one did", now)
	}
	n.Addf("archives to %s, after %s", now, before)
	if err := d.has(ctx, copyName, d.rows); err != nil {
		return err
	}
	if err := d.put(ctx, thirdBeside); err != nil {
		return err
	}
	const name = "third"
	if err := d.fill(ctx, name, map[string]any{"backupRef": map[string]any{"name": copyBackup}, "systemIdentifier": now}); err != nil {
		return err
	}
	if err := d.world.AwaitReady(ctx, givenUp, "DatabaseCluster", name); err != nil {
		return err
	}
	err := d.has(ctx, name, d.rows, thirdBeside)
	return errors.Join(err, d.deleted(ctx, name), d.ends(ctx))
}

// ends deletes the copy with its volume and its Backup.
func (d *timed) ends(ctx context.Context) error {
	if err := d.deleted(ctx, copyName); err != nil {
		return err
	}
	const volume = "data-" + copyServer
	if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, volume); err != nil {
		return err
	}
	return errors.Join(d.world.AwaitGone(ctx, done, "PersistentVolumeClaim", volume), d.world.AwaitGone(ctx, done, "Backup", copyBackup))
}
