//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// repositoryName of the StatefulSet that has the volume of the backups.
const repositoryName = claimName + "-repository"

// hasRepository waits until all of its pods are there, and well.
func (d *database) hasRepository(ctx context.Context, pods int64) error {
	return d.world.Await(ctx, settled, fmt.Sprintf("the backups' server to have %d pods", pods), func() (bool, string) {
		set := d.world.Get("StatefulSet", repositoryName)
		if set == nil || harness.Number(set, "status", "observedGeneration") != set.GetGeneration() {
			return false, "its StatefulSet is not up to date"
		}
		all, ready, updated := harness.Number(set, "status", "replicas"), harness.Number(set, "status", "readyReplicas"), harness.Number(set, "status", "updatedReplicas")
		return all == pods && ready == pods && updated == pods, fmt.Sprintf("%d pods, %d ready, %d of the newest revision", all, ready, updated)
	})
}

// paused keeps Crossplane from what the claim is made of.
func (d *database) paused(ctx context.Context, yes any) error {
	u, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{"crossplane.io/paused": yes}}})
	if err != nil {
		return err
	}
	return d.world.AwaitSeen(ctx, u)
}

// unarchived does something while the server that WAL goes to is away.
func (d *database) unarchived(ctx context.Context, do func() error) error {
	if err := d.hasRepository(ctx, 1); err != nil {
		return err
	}
	if err := d.paused(ctx, "true"); err != nil {
		return err
	}
	err := d.scaleRepository(ctx, 0)
	if err == nil {
		err = d.hasRepository(ctx, 0)
	}
	if err == nil {
		_, err = d.ask(ctx, "postgres", "SELECT pg_switch_wal()")
	}
	if err == nil {
		err = do()
	}
	// Crossplane would put it back as well, but only when it next looks.
	return errors.Join(err, d.scaleRepository(context.WithoutCancel(ctx), 1), d.paused(context.WithoutCancel(ctx), nil), d.hasRepository(ctx, 1))
}

func (d *database) scaleRepository(ctx context.Context, replicas int32) error {
	_, err := cluster.Patch(ctx, "StatefulSet", d.namespace, repositoryName, harness.Patch{"spec": harness.Patch{"replicas": replicas}})
	return err
}

// evictsUnarchived: what waits to be archived holds nothing up, and is archived
// once the store is back, though another server leads by then.
func (d *database) evictsUnarchived(ctx context.Context, n notes) error {
	if err := d.unarchived(ctx, func() error { return d.evicts(ctx, n) }); err != nil {
		return err
	}
	return d.hasArchive(ctx)
}

// hasArchive waits until the archive has each segment of WAL that a restore to now
// reads, up to the one that is being written when it is asked first.
func (d *database) hasArchive(ctx context.Context) error {
	name, err := d.ask(ctx, "postgres", "SELECT pg_walfile_name(pg_switch_wal())")
	if err != nil {
		return err
	}
	end, ok := wal.Parse(strings.TrimSpace(name))
	if !ok {
		return fmt.Errorf("cannot read the name of a segment: %q", name)
	}
	history, err := d.ask(ctx, "postgres", "SELECT pg_read_file('pg_wal/' || name) FROM pg_ls_waldir() WHERE name LIKE '%.history' ORDER BY name DESC LIMIT 1")
	if err != nil {
		return err
	}
	lineage, err := wal.NewLineage(end.Timeline, history)
	if err != nil {
		return err
	}
	return d.world.Await(ctx, settled, "the archive to be whole up to "+end.String(), func() (bool, string) {
		files, err := cluster.Exec(ctx, d.namespace, repositoryName+"-0", "repository", nil, "find", backup.VolumeDir, "-path", "*/archive/*", "-type", "f")
		if err != nil {
			return false, err.Error()
		}
		there, from := map[wal.Segment]bool{}, end.Number
		for file := range strings.FieldsSeq(files) {
			if s, ok := wal.Archived(file); ok {
				there[s], from = true, min(from, s.Number)
			}
		}
		missing := lineage.Missing(from, end.Number+1, func(s wal.Segment) bool { return there[s] })
		return len(missing) == 0, fmt.Sprintf("of %d segments it has not %v", end.Number+1-from, missing)
	})
}
