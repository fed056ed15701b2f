//go:build e2e

package mysql

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// apply creates the objects of manifests.
func (d *database) apply(ctx context.Context, values map[string]string, names ...string) error {
	values["NAMESPACE"], values["REGISTRY"] = d.namespace, cluster.Registry
	for _, name := range names {
		u, err := manifests.Read(name, values)
		if err != nil {
			return err
		}
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// backupName is the name of the claim's Backup, and dumps that of the volume claim for them.
const (
	backupName = claimName + "-backup"
	dumps      = claimName + "-dumps"
)

// backsUp: a claim without a place for backups says so. With one its database is dumped while it takes
// writes, a throw-away MySQL verifies the dump, and a Restore fills the database of another user with all
// its rows.
func (d *database) backsUp(ctx context.Context, n notes) error {
	if err := d.backupsAre(ctx, "NoDestination"); err != nil {
		return err
	}
	if err := d.apply(ctx, map[string]string{"NAME": dumps}, "backup/volume.yaml"); err != nil {
		return err
	}
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"backup": harness.Patch{"destination": harness.Patch{"type": "volume", "bucket": dumps}}}); err != nil {
		return err
	}
	if err := d.backupsAre(ctx, "Healthy"); err != nil {
		return err
	}
	n.Addf("BackupHealthy after %.0fs", time.Since(start).Seconds())
	err := d.world.Await(ctx, settled, "the Backup to be verified", func() (bool, string) {
		u := d.world.Get("Backup", backupName)
		return harness.Field(u, "status", "atProvider", "lastVerified") != "" && harness.ClaimOf(u).Is("Ready"), harness.ClaimOf(u).String()
	})
	if err != nil {
		return err
	}
	// Only the first backup is asked for, so that users can ask for others.
	err = d.world.Await(ctx, soon, "the annotation to go", func() (bool, string) {
		value := d.world.Get("Backup", backupName).GetAnnotations()["backup.example.com/run-now"]
		return value == "", "it is " + value
	})
	if err != nil {
		return err
	}
	if err := d.verifiedBy("/mysql:"); err != nil {
		return err
	}
	if err := d.hasUsers(ctx, n); err != nil {
		return err
	}
	if err := d.apply(ctx, map[string]string{}, "mysql/restore.yaml"); err != nil {
		return err
	}
	return d.world.Await(ctx, settled, "the Restore to complete", func() (bool, string) {
		u := d.world.Get("Restore", "reports")
		phase, rows := harness.Field(u, "status", "atProvider", "phase"), harness.Number(u, "status", "atProvider", "rows")
		if phase == "Completed" {
			n.Addf("%d rows restored", rows)
		}
		return phase == "Completed" && rows > 0, fmt.Sprintf("it is %s with %d rows: %s", phase, rows, harness.ClaimOf(u))
	})
}

// backupsAre waits until condition BackupHealthy has a reason.
func (d *database) backupsAre(ctx context.Context, reason string) error {
	return d.world.Await(ctx, settled, "BackupHealthy to have reason "+reason, func() (bool, string) {
		c := d.status().Condition("BackupHealthy")
		return c.Reason == reason, c.Reason + ": " + c.Message
	})
}

// verifiedBy returns an error unless the throw-away server of a verification was of this image.
func (d *database) verifiedBy(image string) error {
	for _, job := range d.world.List("Job") {
		for _, c := range harness.Containers(job) {
			if name, _ := c["image"].(string); c["name"] == "throw-away" && strings.Contains(name, image) {
				return nil
			}
		}
	}
	return fmt.Errorf("no Job has a throw-away server of an image %s", image)
}
