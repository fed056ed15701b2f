//go:build e2e

package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// apply creates the objects of manifests.
func (d *database) apply(ctx context.Context, values map[string]string, names ...string) error {
	values["NAMESPACE"] = d.namespace
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

// backsUp: a Backup that names the claim dumps the database while it takes writes, a throw-away MySQL
// verifies the dump, and a Restore fills the database of another user with all its rows.
func (d *database) backsUp(ctx context.Context, n notes) error {
	if err := d.apply(ctx, map[string]string{"NAME": "ledger-dumps"}, "backup/volume.yaml", "mysql/backup.yaml"); err != nil {
		return err
	}
	var verified string
	err := d.world.Await(ctx, settled, "the Backup to be verified", func() (bool, string) {
		u := d.world.Get("Backup", claimName)
		verified = harness.Field(u, "status", "atProvider", "lastVerified")
		return verified != "" && harness.ClaimOf(u).Is("Ready"), harness.ClaimOf(u).String()
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
