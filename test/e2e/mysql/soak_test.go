//go:build e2e

package mysql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// fewCopies is the largest share of servers that may rejoin by a copy of another one.
const fewCopies = 0.05

// soak returns many faults in one run, in an order that a seed draws. After each of them no acknowledged
// row is lost, and no two servers acknowledged at the same time. At the end the archive of binary logs has
// every row.
func soak() types.Feature {
	d := &database{namespace: "e2e-mysql-soak", manifest: "mysql/soak.yaml", base: harness.Patch{"size": baseSize}, lasting: true}
	before := func(f suite.Feature) suite.Feature {
		return f.Quick("three servers come up, and their binary logs are archived", d.comesUpArchived).
			Quick("each server has a disk of its own", d.hasSmallDisks)
	}
	return tests.Soak("a group of MySQL", d.namespace, d.faults(), before, d.survives).
		Quick("servers rejoin without a copy", d.copiesFew).
		Quick("a new cluster has every row, by the archive", d.restoresAll).
		Feature()
}

func (d *database) faults() map[string]suite.Fault {
	always := func(do event) suite.Fault {
		return func(ctx context.Context, n notes, _ *rand.Rand) error { return do(ctx, n) }
	}
	return map[string]suite.Fault{
		"pod is deleted with no grace":                     d.losesAny,
		"primary's processes are killed":                   always(d.losesProcesses),
		"primary is frozen for 30 s":                       always(d.freezes),
		"primary's pod is evicted":                         always(d.evicts),
		"network between two is cut":                       d.losesNetwork,
		"primary is cut off from the others":               always(d.isolated),
		"two of three are lost at once":                    always(d.losesMajority),
		"all pods are lost at once":                        always(d.losesAll),
		"all pods are lost right after a failover":         always(d.losesAllAfterFailover),
		"API server is away":                               always(d.losesAPIServer),
		"store is away":                                    always(d.losesStore),
		"primary's pod is evicted while the store is away": always(d.evictsUnarchived),
		"disk of a server is full":                         d.fillsAny,
		"pod that archives is deleted":                     always(d.losesArchiver),
	}
}

// losesAny deletes a pod with no grace.
func (d *database) losesAny(ctx context.Context, _ notes, draw *rand.Rand) error {
	pods := d.pods()
	old := pods[draw.IntN(len(pods))]
	if err := d.deletePod(ctx, old); err != nil {
		return err
	}
	return d.replaced(ctx, "Pod", old)
}

// storeAway is for how long the store is away.
const storeAway = 25 * time.Second

// losesStore freezes the server that stores binary logs.
func (d *database) losesStore(ctx context.Context, _ notes) error {
	return d.withoutStore(ctx, func() error { return nil })
}

// evictsUnarchived: another server becomes the primary while nothing can be stored, which does not block an eviction.
func (d *database) evictsUnarchived(ctx context.Context, n notes) error {
	old, start := d.primary(), time.Now()
	return d.withoutStore(ctx, func() error {
		if err := d.evicts(ctx, n); err != nil {
			return err
		}
		if err := d.replaced(ctx, "Pod", old); err != nil {
			return err
		}
		if took := time.Since(start); took > endsWithin {
			return fmt.Errorf("the primary's pod ended after %.0f s, and has %.0f s", took.Seconds(), endsWithin.Seconds())
		}
		return nil
	})
}

// withoutStore causes an event while the server that stores binary logs is frozen.
func (d *database) withoutStore(ctx context.Context, do func() error) error {
	pods := d.labelled("app", storeName)
	if len(pods) == 0 {
		return errors.New("there is no pod of the store to freeze")
	}
	pod, until := d.world.Get("Pod", pods[0]), time.Now().Add(storeAway)
	// Thaw it in any case, because frozen processes would stay behind.
	defer func() { _, _ = harness.Signal(pod, syscall.SIGCONT) }()
	if _, err := harness.Signal(pod, syscall.SIGSTOP); err != nil {
		return unlessNode(err)
	}
	return errors.Join(do(), harness.Until(ctx, until))
}

// losesArchiver deletes the pod that archives binary logs.
func (d *database) losesArchiver(ctx context.Context, _ notes) error {
	pods := d.labelled("app.kubernetes.io/component", "archive")
	if len(pods) == 0 {
		return errors.New("there is no pod that archives binary logs")
	}
	return d.deletePod(ctx, d.world.Get("Pod", pods[0]))
}

// comesUpArchived starts the store and waits for the first backup.
func (d *database) comesUpArchived(ctx context.Context, n notes) error {
	if err := cluster.CreateNamespace(ctx, d.namespace); err != nil {
		return err
	}
	var err error
	if d.world, err = cluster.Watch(ctx, d.namespace); err != nil {
		return err
	}
	if err := d.startStore(ctx); err != nil {
		return err
	}
	if err := d.createKey(ctx); err != nil {
		return err
	}
	if err := d.apply(ctx, map[string]string{}, d.manifest); err != nil {
		return err
	}
	start := time.Now()
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("Ready after %.1fs", time.Since(start).Seconds())
	return d.world.Await(ctx, settled, "its first backup, and the archive", func() (bool, string) {
		c := d.status()
		return c.Is("ArchivingHealthy") && c.Is("BackupHealthy"), c.String()
	})
}

// survives returns a check that the group recovers from a fault, and counts how its servers rejoined.
func (d *database) survives(do func(context.Context, notes) error) check {
	return func(ctx context.Context, n notes) error {
		start := time.Now()
		_, err := d.account(ctx, n, noTarget, do)
		incremental, copied, jerr := d.joins(ctx, start)
		d.rejoined, d.copied = d.rejoined+incremental+copied, d.copied+copied
		if copied > 0 {
			n.Addf("%d servers rejoined by a copy", copied)
		}
		return errors.Join(err, jerr)
	}
}

// copiesFew: nearly all servers rejoined by what they lacked.
func (d *database) copiesFew(_ context.Context, n notes) error {
	n.Addf("%d servers rejoined, %d of them by a copy", d.rejoined, d.copied)
	if d.rejoined == 0 || float64(d.copied) > fewCopies*float64(d.rejoined) {
		return fmt.Errorf("%d of %d servers rejoined by a copy of another one, at most %.0f %% may", d.copied, d.rejoined, 100*fewCopies)
	}
	return nil
}

// archivedWithin is how long it may take until a Backup reports that a time can be restored: the archive reports it in
// steps of five minutes, and the Backup reads that a minute after it should.
const archivedWithin = 10 * time.Minute

// ofLedger selects the rows of a ledger, neighbours as ranges, as JSON.
const ofLedger = `SELECT JSON_ARRAYAGG(JSON_OBJECT('writer', writer, 'first', first, 'last', last)) FROM (
  SELECT writer, min(seq) AS first, max(seq) AS last FROM (
    SELECT writer, seq, CAST(seq AS SIGNED) - CAST(row_number() OVER (PARTITION BY writer ORDER BY seq) AS SIGNED) AS island FROM ledger WHERE run = '%s'
  ) AS r GROUP BY writer, island) AS s`

// restoresAll: over all faults the archive has no gap, and a new cluster has every row by it.
func (d *database) restoresAll(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	acks, err := d.ledger.Acknowledged(ctx)
	if err != nil {
		return err
	}
	read := time.Now()
	backup := claimName + "-backup"
	err = d.world.Await(ctx, archivedWithin, "the archive to have all of it", func() (bool, string) {
		u := d.world.Get("Backup", backup)
		last := harness.Field(u, "status", "atProvider", "lastRecoverableTime")
		at, err := time.Parse(time.RFC3339, last)
		return err == nil && at.After(read), "the last recoverable time is " + last + ": " + harness.ClaimOf(u).String()
	})
	if err != nil {
		return err
	}
	if gaps, err := harness.List(d.world.Get("Backup", backup), "status", "atProvider", "gaps"); err != nil || len(gaps) > 0 {
		return fmt.Errorf("the archive has gaps: %v: %w", gaps, err)
	}
	start := time.Now()
	if err := d.apply(ctx, map[string]string{"NAME": restoredName, "BACKUP": backup}, "mysql/rewound.yaml"); err != nil {
		return err
	}
	if err := d.world.AwaitReady(ctx, settled, "DatabaseCluster", restoredName); err != nil {
		return err
	}
	n.Addf("restored after %.0fs", time.Since(start).Seconds())
	out, err := d.sql(ctx, restoredName, fmt.Sprintf(ofLedger, d.ledger.Run))
	if err != nil {
		return err
	}
	var rows []harness.Rows
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		return fmt.Errorf("cannot decode which rows were restored: %w", err)
	}
	if lost := harness.Missing(acks, rows); len(lost) > 0 {
		return fmt.Errorf("%d of %d acknowledged rows are not in the archive, the first one was %+v", len(lost), len(acks), lost[0])
	}
	n.Addf("all of %d acknowledged rows", len(acks))
	return nil
}
