//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// outageFor is many times as long as Patroni's leader lock is valid.
const outageFor = 2 * time.Minute

// losesAPIServer freezes the API server, which is worse than its end: requests are not refused but
// wait.
func (d *database) losesAPIServer(ctx context.Context, _ notes) error {
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := d.frozenAPI(ctx, outageFor); err != nil {
		return err
	}
	a, err := d.ledger.Account(ctx, from)
	if len(a.Reigns) != 1 {
		err = errors.Join(err, fmt.Errorf("the primary was demoted: %v", a.Reigns))
	}
	return err
}

// whenListed is how soon the primary has to know the address of a member that is back. Its own turns
// are 5 s apart.
const whenListed = 2 * time.Second

// losesAPIServerSoon freezes the API server a moment after a replica's pod was replaced. The primary
// continues only if it asks the new pod whether it may.
func (d *database) losesAPIServerSoon(ctx context.Context, n notes) error {
	// More than once, since the primary's turn may come at the right moment by chance.
	for range 3 {
		if err := d.whole(ctx, baseSize); err != nil {
			return err
		}
		old := d.replica()
		if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
			return err
		}
		var address string
		err := d.world.Await(ctx, settled, "Patroni of the new pod "+old.GetName()+" to give its address", func() (bool, string) {
			p := d.world.Get("Pod", old.GetName())
			address = harness.Field(p, "status", "podIP")
			return p != nil && p.GetUID() != old.GetUID() && address != "" && strings.Contains(p.GetAnnotations()["status"], "//"+address+":"), "it does not"
		})
		if err != nil {
			return err
		}
		back := time.Now()
		err = d.world.Await(ctx, whenListed, "the primary to list "+address+" for failsafe mode", func() (bool, string) {
			members := d.world.Get("ConfigMap", leaderName).GetAnnotations()["failsafe"]
			return strings.Contains(members, "//"+address+":"), "it lists " + members
		})
		if err != nil {
			return err
		}
		n.Addf("listed after %.2fs", time.Since(back).Seconds())
	}
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := d.frozenAPI(ctx, frozenBefore); err != nil {
		return err
	}
	a, err := d.ledger.Account(ctx, from)
	if len(a.Reigns) != 1 {
		err = errors.Join(err, fmt.Errorf("the primary was demoted: %v", a.Reigns))
	}
	return err
}

// frozenAPI freezes the API server for a time, and waits until it answers again.
func (d *database) frozenAPI(ctx context.Context, length time.Duration) error {
	return unlessNode(d.ledger.FreezeAPI(ctx, length, settled))
}

// losesCrossplane scales Crossplane and its functions to zero, and then deletes the primary.
func (d *database) losesCrossplane(ctx context.Context, n notes) error {
	return cluster.WithoutCrossplane(ctx, soon, func(deployments []appsv1.Deployment) error {
		old := d.primary()
		if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
			return err
		}
		if err := d.succeeded(ctx, old); err != nil {
			return err
		}
		n.Addf("%d deployments at zero", len(deployments))
		return d.replaced(ctx, "Pod", old)
	})
}
