//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// repositoryName is the name of the StatefulSet with the volume of the backups.
const repositoryName = claimName + "-repository"

// hasRepository waits until the StatefulSet has so many pods, all of them ready and up to date.
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

// heardWithin is how long it may take until Crossplane observes that a claim is paused or resumed,
// and heardTries how often the change is repeated meanwhile. That is longer than its circuit
// breaker stays open.
const (
	heardWithin = 6 * time.Minute
	heardTries  = 36
)

// paused pauses or resumes the reconciliation of the claim by Crossplane. The circuit breaker of
// Crossplane may drop the event of the change: it opens while a database like this one starts, and
// stays open for five minutes. A paused claim is not polled either, so it is changed until a change
// is observed. While the circuit breaker is open, one event in 30 seconds is let through.
func (d *database) paused(ctx context.Context, yes bool) error {
	const try = "storeplane.example.com/e2e-try"
	value := any(nil)
	if yes {
		value = "true"
	}
	for n := 1; ; n++ {
		annotations := harness.Patch{"crossplane.io/paused": value, try: strconv.Itoa(n)}
		if _, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"metadata": harness.Patch{"annotations": annotations}}); err != nil {
			return err
		}
		err := d.world.Await(ctx, heardWithin/heardTries, fmt.Sprintf("the claim to be paused: %t (try %d)", yes, n), func() (bool, string) {
			c := d.status()
			return (c.Condition("Synced").Reason == "ReconcilePaused") == yes, c.String()
		})
		if err == nil || n == heardTries || ctx.Err() != nil {
			return err
		}
	}
}

// unarchived calls do while the server that stores WAL is down.
func (d *database) unarchived(ctx context.Context, do func() error) error {
	if err := d.hasRepository(ctx, 1); err != nil {
		return err
	}
	err := d.paused(ctx, true)
	if err == nil {
		err = d.scaleRepository(ctx, 0)
	}
	if err == nil {
		err = d.hasRepository(ctx, 0)
	}
	if err == nil {
		_, err = d.ask(ctx, "postgres", "SELECT pg_switch_wal()")
	}
	if err == nil {
		err = do()
	}
	// Crossplane would scale it up too, but only with its next poll.
	return errors.Join(err, d.scaleRepository(context.WithoutCancel(ctx), 1), d.paused(context.WithoutCancel(ctx), false), d.hasRepository(ctx, 1))
}

func (d *database) scaleRepository(ctx context.Context, replicas int32) error {
	_, err := cluster.Patch(ctx, "StatefulSet", d.namespace, repositoryName, harness.Patch{"spec": harness.Patch{"replicas": replicas}})
	return err
}

// evictsUnarchived checks that WAL that cannot be archived does not block an eviction, and that it
// is archived once the store is back, although another server is primary by then.
func (d *database) evictsUnarchived(ctx context.Context, n notes) error {
	from, err := d.segment(ctx)
	if err != nil {
		return err
	}
	if err := d.unarchived(ctx, func() error { return d.evicts(ctx, n) }); err != nil {
		return err
	}
	return d.hasArchive(ctx, from.Number)
}

// segment returns the segment that is being written.
func (d *database) segment(ctx context.Context) (wal.Segment, error) {
	name, err := d.ask(ctx, "postgres", "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
	if err != nil {
		return wal.Segment{}, err
	}
	s, ok := wal.Parse(strings.TrimSpace(name))
	if !ok {
		return s, fmt.Errorf("cannot read the name of a segment: %q", name)
	}
	return s, nil
}

// histories returns the checksums of the timeline histories in the archive, by file.
func (d *database) histories(ctx context.Context) (map[string]string, error) {
	files, err := cluster.Exec(ctx, d.namespace, repositoryName+"-0", "repository", nil, "sh", "-c", "find "+backup.VolumeDir+" -type f -name '*.history' -exec md5sum {} +")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for line := range strings.Lines(files) {
		if sum, file, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			out[file] = sum
		}
	}
	return out, nil
}

// hasArchive waits until the archive has each segment of WAL from a number up to the one that is
// being written when it is called. Earlier segments may be missing because of earlier faults.
func (d *database) hasArchive(ctx context.Context, from uint64) error {
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
		there := map[wal.Segment]bool{}
		for file := range strings.FieldsSeq(files) {
			if s, ok := wal.Archived(file); ok {
				there[s] = true
			}
		}
		missing := lineage.Missing(from, end.Number+1, func(s wal.Segment) bool { return there[s] })
		return len(missing) == 0, fmt.Sprintf("of %d segments it has not %v", end.Number+1-from, missing)
	})
}
