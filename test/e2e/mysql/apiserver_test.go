//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// For how long the API server is frozen: longer than a leader's lease is valid, than a pod takes to start, and than all leases of a
// cluster.
const (
	apiFor   = 35 * time.Second
	apiBrief = 25 * time.Second
	apiLong  = 2 * time.Minute
)

// losesAPIServer freezes the API server, which is worse than its end: requests are not refused but wait. It waits until it
// answers again.
func (d *database) losesAPIServer(ctx context.Context, _ notes) error {
	return d.frozenAPI(ctx, apiFor)
}

// losesAPIServerLong freezes it for longer than all leases of a cluster last.
func (d *database) losesAPIServerLong(ctx context.Context, _ notes) error {
	return d.keepsPrimary(ctx, func() error { return d.frozenAPI(ctx, apiLong) })
}

// losesAPIServerSoon freezes it as soon as a replica's new pod has an address. Its server starts meanwhile.
func (d *database) losesAPIServerSoon(ctx context.Context, _ notes) error {
	return d.keepsPrimary(ctx, func() error {
		old := d.with("replica")[0]
		if err := d.deletePod(ctx, old); err != nil {
			return err
		}
		err := d.world.Await(ctx, settled, "an address of the new pod "+old.GetName(), func() (bool, string) {
			p := d.world.Get("Pod", old.GetName())
			return p != nil && p.GetUID() != old.GetUID() && harness.Field(p, "status", "podIP") != "", "it has none"
		})
		if err != nil {
			return err
		}
		return d.frozenAPI(ctx, apiBrief)
	})
}

// keepsPrimary causes a fault of the API server, after which the primary has to be the same.
func (d *database) keepsPrimary(ctx context.Context, fault func() error) error {
	old := d.primary()
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := fault(); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	if p := d.primary(); p == nil || p.GetUID() != old.GetUID() {
		return fmt.Errorf("the primary was %s, and has changed: %s", old.GetName(), d.status())
	}
	a, err := d.ledger.Account(ctx, from)
	for _, ack := range a.Acks {
		if ack.Server != a.Acks[0].Server {
			return errors.Join(err, fmt.Errorf("%s took a write meanwhile, and not %s alone", ack.Server, a.Acks[0].Server))
		}
	}
	return err
}

// losesPrimaryBusy deletes the primary's pod with no grace while the API server is busy.
func (d *database) losesPrimaryBusy(ctx context.Context, n notes) error {
	end, err := cluster.BusyAPI(ctx, d.namespace+"-load")
	if err != nil {
		return err
	}
	defer end()
	if err := d.losesPrimary(ctx, n); err != nil {
		return err
	}
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	return d.ledger.Flows(ctx, soon, now)
}

// losesPrimaryThawed deletes the primary's pod with no grace as soon as the API server answers again.
func (d *database) losesPrimaryThawed(ctx context.Context, n notes) error {
	if err := d.frozenAPI(ctx, apiBrief); err != nil {
		return err
	}
	return d.losesPrimary(ctx, n)
}

// frozenAPI freezes the API server for a time, and waits until it answers again.
func (d *database) frozenAPI(ctx context.Context, length time.Duration) error {
	return unlessNode(d.ledger.FreezeAPI(ctx, length, settled))
}
