//go:build e2e

package backup

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/e2e-framework/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// field is the ground of logical backups.
var field = newGround("e2e-backup")

func logical() types.Feature {
	g := field
	f := tests.Feature("logical backups", g.namespace).
		Quick("postgresql into s3: backed up, verified, restored, the same row by row", g.pair(engines[0], backupv1.S3))
	for _, e := range engines {
		for _, s := range stores {
			if e.name == backupv1.PostgreSQL && s == backupv1.S3 {
				continue
			}
			f = f.Full(fmt.Sprintf("%s into %s: backed up, verified, restored, the same row by row", e.name, s), g.pair(e, s))
		}
	}
	f = f.Quick("the API server refuses what makes no sense, in words", g.refusesNonsense).
		Full("what only the provider can know is refused in a condition", g.refusesInWords).
		Full("encrypted backups: nothing of the data is in the store, and only the key restores", g.encrypts).
		Quick("a program that a database holds finds no credentials while it is verified", g.findsNothing).
		Full("a database that holds something is left alone, unless overwrite says otherwise", g.overwrites).
		Quick("in the platform's store a Backup has a key of its own, which restores a namespace that is lost", g.losesNamespace).
		Full("of two Restores into one database one wins, and the other one is refused", g.oneWins).
		Full("a Restore whose pod is killed goes on in another one", g.goesOn).
		Full("restored by id, by time, and from a location without a Backup", g.chooses).
		Full("old backups expire, the newest and the newest verified never", g.retains).
		Full("deletionPolicy Delete empties the store, and a release lets go of one that is gone", g.deletes).
		Full("a hundred missed schedules become one backup", g.catchesUp).
		Quick("pods are restricted, and no password is where it should not be", g.isSafe)
	return f.Feature()
}

// pair returns a check of a backup and a restore of an engine with a store.
func (g *ground) pair(e engine, s backupv1.StoreType) suite.Check {
	return func(ctx context.Context, n notes) error {
		if err := g.ready(ctx); err != nil {
			return err
		}
		if err := g.store(ctx, s); err != nil {
			return err
		}
		if err := g.loaded(ctx, e); err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s", e.name, s)
		if err := g.file(ctx, name, g.parameters(e, s, verified)); err != nil {
			return err
		}
		id, err := g.succeed(ctx, name)
		if err != nil {
			return err
		}
		b := g.backup(name).Status.AtProvider
		n.Addf("%s in %s", b.Size, b.LastDuration.Duration)
		if err := g.proven(ctx, name, id); err != nil {
			return err
		}
		r, err := g.bring(ctx, name, e, from(name))
		if err != nil {
			return err
		}
		o := r.Status.AtProvider
		n.Addf("%d rows restored in %s", o.Rows, o.CompletionTime.Sub(o.StartTime.Time))
		if o.Backup != id {
			return fmt.Errorf("backup %s was restored instead of %s", o.Backup, id)
		}
		if !strings.HasSuffix(b.Location, "/"+g.namespace+"/"+name+"/logical") {
			return fmt.Errorf("the backups lie in %q, not in PREFIX/NAMESPACE/NAME/logical", b.Location)
		}
		if s == backupv1.Azure || s == backupv1.Volume && e.name != backupv1.PostgreSQL {
			// The tests cannot read the files of these stores.
			return nil
		}
		return g.whole(ctx, s, name)
	}
}
