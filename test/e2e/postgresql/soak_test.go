//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// Durations of faults.
const (
	// storeAway is longer than pgBackRest waits.
	storeAway = 25 * time.Second
	apiAway   = 35 * time.Second
	cutFor    = 15 * time.Second
)

// soak returns many faults in one run, in an order that a seed draws. After each of them no
// acknowledged row is lost, no two servers were primary at the same time, and a restore from the
// archive has every row.
func soak() types.Feature {
	d := &database{namespace: "e2e-postgresql-soak", manifest: "postgresql/production.yaml"}
	before := func(f suite.Feature) suite.Feature {
		return f.Quick("each server has a disk of its own", d.hasSmallDisks)
	}
	return tests.Soak("a database", d.namespace, d.faults(), before, d.survives).Feature()
}

func (d *database) faults() map[string]suite.Fault {
	return map[string]suite.Fault{
		"pod is deleted with no grace": func(ctx context.Context, _ notes, draw *rand.Rand) error {
			old := d.drawn(draw)
			if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
				return err
			}
			return d.replaced(ctx, "Pod", old)
		},
		"primary's processes are killed": func(ctx context.Context, n notes, _ *rand.Rand) error { return d.losesProcesses(ctx, n) },
		"primary wakes up as its lock is taken": func(ctx context.Context, _ notes, _ *rand.Rand) error {
			_, err := d.wakes(ctx)
			return err
		},
		"primary's pod is evicted":    func(ctx context.Context, n notes, _ *rand.Rand) error { return d.evicts(ctx, n) },
		"store is away":               d.losesStore,
		"API server is away":          func(ctx context.Context, _ notes, _ *rand.Rand) error { return d.frozenAPI(ctx, apiAway) },
		"network between two is cut":  d.losesNetwork,
		"disk of the primary is full": d.losesDisk,
	}
}

// drawn returns a server at random.
func (d *database) drawn(draw *rand.Rand) *unstructured.Unstructured {
	pods := d.pods()
	return pods[draw.IntN(len(pods))]
}

// losesStore freezes the server that stores WAL. It does not pause the claim or scale anything,
// because after so many changes Crossplane may take long to react.
func (d *database) losesStore(ctx context.Context, _ notes, _ *rand.Rand) error {
	store := d.world.Get("Pod", repositoryName+"-0")
	// Thaw it in any case, because frozen processes would stay behind.
	defer func() { _ = thaw(store) }()
	if _, err := harness.Signal(store, syscall.SIGSTOP); err != nil {
		return unlessNode(err)
	}
	if err := harness.Until(ctx, time.Now().Add(storeAway)); err != nil {
		return err
	}
	return thaw(store)
}

// losesNetwork cuts the network between two servers. The primary may be one of them.
func (d *database) losesNetwork(ctx context.Context, _ notes, draw *rand.Rand) error {
	pods := d.pods()
	draw.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	heal, err := harness.Cut(ctx, pods[0], harness.Field(pods[1], "status", "podIP"))
	if err != nil {
		return unlessNode(err)
	}
	// Restore the network also after an interrupt.
	return errors.Join(harness.Until(ctx, time.Now().Add(cutFor)), heal(context.WithoutCancel(ctx)))
}

// survives returns a check that the database recovers from a fault.
func (d *database) survives(do func(context.Context, notes) error) check {
	return func(ctx context.Context, n notes) error {
		if err := d.ready(ctx); err != nil {
			return err
		}
		if err := d.keepLedger(ctx); err != nil {
			return err
		}
		from, err := d.ledger.Mark(ctx)
		if err != nil {
			return err
		}
		if err := do(ctx, n); err != nil {
			return err
		}
		if err := d.flows(ctx); err != nil {
			return err
		}
		restored := d.restores(ctx, n)
		a, err := d.recover(ctx, from)
		n.Addf("gap %.2fs, %s, %s", a.Gap.Seconds(), a, reignsOf(a))
		return errors.Join(restored, err)
	}
}
