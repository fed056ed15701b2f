//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// anotherWithin is how soon the backup has to be complete with which another history begins: docs/mysql.md has five minutes until that
// begins, and 20 until its backup starts.
const anotherWithin = 30 * time.Minute

// archived is a check of a database whose binary logs are archived, which is claimed unless that was done.
func (d *database) archived(do check) check {
	return func(ctx context.Context, n notes) error {
		if d.world == nil {
			if err := d.comesUpArchived(ctx, n); err != nil {
				return err
			}
		}
		return do(ctx, n)
	}
}

// beginsHistory: the volume that leads lacks what was archived of the newest. It archives beside that, and either can be restored.
func (d *database) beginsHistory(ctx context.Context, n notes) error {
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	backup := claimName + "-backup"
	system := func() string {
		return harness.Field(d.world.Get("Backup", backup), "status", "atProvider", "systemIdentifier")
	}
	given := system()
	if given == "" {
		return fmt.Errorf("the Backup does not name the data whose backups these are: %s", d.world.Claim("Backup", backup))
	}
	if err := d.givesUp(ctx); err != nil {
		return err
	}
	if err := d.says(ctx, settled, "the primary lacks transactions that are archived, 1 in all"); err != nil {
		return err
	}
	err := d.world.Await(ctx, settled, "all servers to serve", func() (bool, string) {
		return d.primary() != nil && len(d.with("replica")) == baseSize-1 && d.status().Is("Ready"), d.status().String()
	})
	if err != nil {
		return err
	}
	start := time.Now()
	err = d.world.Await(ctx, anotherWithin, "a backup of another history, and its archive", func() (bool, string) {
		c := d.status()
		return system() != "" && system() != given && c.Is("ArchivingHealthy") && c.Is("BackupHealthy"), c.String()
	})
	if err != nil {
		return err
	}
	n.Addf("archived again after %.0fs", time.Since(start).Seconds())
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	if err := d.archivesTable(ctx, "begun"); err != nil {
		return err
	}
	for name, r := range map[string]struct{ system, tables string }{
		"given": {given, "given_up"},
		"begun": {system(), "begun"},
	} {
		values := map[string]string{"NAME": name, "BACKUP": backup, "SYSTEM": strconv.Quote(r.system)}
		got, err := d.restored(ctx, values, "SELECT COALESCE(GROUP_CONCAT(table_name), '') FROM information_schema.tables WHERE table_name IN ('begun', 'given_up')")
		if err != nil {
			return err
		}
		if got != r.tables {
			return fmt.Errorf("the data with identifier %s has tables %q, want %q", r.system, got, r.tables)
		}
	}
	return nil
}

// givesUp writes what only the volume of the first server has, and the archive, and claims again without that volume.
func (d *database) givesUp(ctx context.Context) error {
	if err := errors.Join(d.change(ctx, harness.Patch{"size": 1}), d.whole(ctx, 1)); err != nil {
		return err
	}
	if err := d.archivesTable(ctx, "given_up"); err != nil {
		return err
	}
	if err := d.end(ctx); err != nil {
		return err
	}
	if err := d.losesKept(ctx, server(0)); err != nil {
		return err
	}
	return d.claimAgain(ctx)
}

// archivesTable creates a table, and waits until that is archived. Nothing else is written meanwhile.
func (d *database) archivesTable(ctx context.Context, name string) error {
	const prefix = "history"
	before, err := d.segments(ctx, prefix)
	if err != nil {
		return err
	}
	if _, err := d.sql(ctx, claimName, "CREATE TABLE "+name+" (n INT PRIMARY KEY)"); err != nil {
		return err
	}
	return eventually(ctx, "table "+name+" to be archived", func() (bool, string) {
		now, err := d.segments(ctx, prefix)
		return err == nil && now > before, fmt.Sprintf("%d segments, %d before: %v", now, before, err)
	})
}
