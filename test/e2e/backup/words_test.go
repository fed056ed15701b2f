//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// refusesInWords checks that a missing dependency is reported at once, and not only when the first
// schedule is due.
func (g *ground) refusesInWords(ctx context.Context, _ notes) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.secret(ctx, "without-key", map[string]string{"other": "thing"}); err != nil {
		return err
	}
	e := engines[1]
	cases := map[string]struct {
		change change
		want   string
	}{
		"no-secret": {func(p *backupv1.BackupParameters) { p.Source.Connection.SecretRef.Name = "nowhere" }, "nowhere"},
		"no-cluster": {func(p *backupv1.BackupParameters) {
			p.Source = engines[0].database("nowhere-source")
			p.Source.Connection = backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "nowhere"}}
		}, "nowhere"},
		"no-store": {func(p *backupv1.BackupParameters) {
			p.Destination = g.destination(backupv1.S3, e)
			p.Destination.SecretRef.Name = "nowhere"
		}, "nowhere"},
		"no-key": {func(p *backupv1.BackupParameters) {
			p.Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "without-key", Key: "key"}}
		}, "without-key"},
		"bad-cron": {func(p *backupv1.BackupParameters) { p.Schedule = "99 99 * * *" }, "99 99 * * *"},
		"bad-zone": {func(p *backupv1.BackupParameters) { p.Schedule, p.TimeZone = "0 2 * * *", "Nowhere/Land" }, "Nowhere/Land"},
	}
	var errs []error
	if err := g.server(ctx, e, e.source()); err != nil {
		return err
	}
	for name, tc := range cases {
		if err := g.file(ctx, name, g.parameters(e, backupv1.Volume, tc.change)); err != nil {
			errs = append(errs, err)
			continue
		}
		err := g.awaitBackup(ctx, soon, name, "to say what it misses", func(b backupv1.Backup) bool {
			for _, c := range b.Status.Conditions {
				if c.Status == "False" && strings.Contains(c.Message, tc.want) {
					return true
				}
			}
			return false
		})
		if err == nil && len(g.running(name)) > 0 {
			err = fmt.Errorf("backup %s runs though it cannot", name)
		}
		errs = append(errs, err, g.remove(ctx, name))
	}
	return errors.Join(errs...)
}
