//go:build e2e

package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Names of the physical Backup and of the claim that is filled from it.
const (
	copiesName   = claimName + "-copies"
	restoredName = "restored"
	storeName    = "s3"
)

// copies: the servers are copied while they take writes, into an object store and encrypted. A server of
// the same image starts with the copy to verify it, and a new cluster begins with it: it has every row that
// was acknowledged before.
func (d *database) copies(ctx context.Context, n notes) error {
	if err := d.startStore(ctx); err != nil {
		return err
	}
	if err := d.createKey(ctx); err != nil {
		return err
	}
	if err := d.apply(ctx, map[string]string{}, "mysql/copies.yaml"); err != nil {
		return err
	}
	err := d.world.Await(ctx, settled, "the Backup to be Ready", func() (bool, string) {
		u := d.world.Get("Backup", copiesName)
		return harness.ClaimOf(u).Is("Ready"), harness.ClaimOf(u).String()
	})
	if err != nil {
		return err
	}
	acknowledged, err := d.ledger.Acknowledged(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	annotations := harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"backup.example.com/run-now": "1"}}}
	if _, err := cluster.Patch(ctx, "Backup", d.namespace, copiesName, annotations); err != nil {
		return err
	}
	err = d.world.Await(ctx, settled, "the Backup to be verified", func() (bool, string) {
		u := d.world.Get("Backup", copiesName)
		return harness.Field(u, "status", "atProvider", "lastVerified") != "", harness.ClaimOf(u).String()
	})
	if err != nil {
		return err
	}
	size := harness.Field(d.world.Get("Backup", copiesName), "status", "atProvider", "size")
	n.Addf("%s, verified after %.0fs", size, time.Since(start).Seconds())
	return d.fills(ctx, n, len(acknowledged))
}

// createKey creates the Secret with the key of backups.
func (d *database) createKey(ctx context.Context) error {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("cannot generate a key: %w", err)
	}
	return cluster.CreateSecret(ctx, d.namespace, "copies-key", map[string]string{"identity": identity.String() + "\n"})
}

// fills fills a new cluster from the newest copy, and checks that it has at least so many rows.
func (d *database) fills(ctx context.Context, n notes, rows int) error {
	start := time.Now()
	if err := d.apply(ctx, map[string]string{}, "mysql/restored.yaml"); err != nil {
		return err
	}
	if err := d.world.AwaitReady(ctx, settled, "DatabaseCluster", restoredName); err != nil {
		return err
	}
	n.Addf("filled after %.0fs", time.Since(start).Seconds())
	out, err := d.sql(ctx, restoredName, "SELECT count(*) FROM ledger")
	if err != nil {
		return err
	}
	has, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || has < rows {
		return fmt.Errorf("the new cluster has %q rows of the ledger, and %d were acknowledged before the backup", out, rows)
	}
	n.Addf("%d of %d rows", has, rows)
	return cluster.Delete(ctx, "DatabaseCluster", d.namespace, restoredName)
}

// labelled returns the names of the pods with a label.
func (d *database) labelled(key, value string) []string {
	var out []string
	for _, p := range d.world.List("Pod") {
		if p.GetLabels()[key] == value && p.GetDeletionTimestamp() == nil {
			out = append(out, p.GetName())
		}
	}
	return out
}

// startStore starts an object store that speaks TLS, unless there is one.
func (d *database) startStore(ctx context.Context) error {
	if d.world.Get("Deployment", storeName) != nil {
		return nil
	}
	host := storeName + "." + d.namespace
	authority, certificate, key, err := harness.Certificate(storeName, host, host+".svc")
	if err != nil {
		return err
	}
	for name, texts := range map[string]map[string]string{
		storeName + "-tls": {"tls.crt": certificate, "tls.key": key},
		storeName:          {"AWS_ACCESS_KEY_ID": "e2e", "AWS_SECRET_ACCESS_KEY": "e2e secret/with+odd=characters", "ca.crt": authority},
	} {
		if err := cluster.CreateSecret(ctx, d.namespace, name, texts); err != nil {
			return err
		}
	}
	if err := d.apply(ctx, map[string]string{"NAME": storeName, "PORT": "7070"}, "backup/volume.yaml", "backup/service.yaml", "backup/s3.yaml"); err != nil {
		return err
	}
	return d.world.Await(ctx, soon, storeName+" to be available", func() (bool, string) {
		available := harness.Number(d.world.Get("Deployment", storeName), "status", "availableReplicas")
		return available == 1, fmt.Sprintf("%d pods are", available)
	})
}
