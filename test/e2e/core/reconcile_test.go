//go:build e2e

package core

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// answersRequests checks that Crossplane composes a claim at once if that is requested, and records
// it in the status.
func answersRequests(ctx context.Context, _ notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	const annotation = "crossplane.io/reconcile-requested-at"
	var errs []error
	for _, c := range []struct{ kind, name string }{{"EcommercePlatform", claimName}, {"DatabaseCluster", databaseClaim}, {"WebApp", "store-backend"}} {
		token := rand.Text()
		if _, err := cluster.Patch(ctx, c.kind, dev.namespace, c.name, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{annotation: token}}}); err != nil {
			return err
		}
		errs = append(errs, dev.world.Await(ctx, soon, fmt.Sprintf("%s %s to answer", c.kind, c.name), func() (bool, string) {
			u := dev.world.Get(c.kind, c.name)
			claim := harness.ClaimOf(u)
			at := harness.Field(u, "status", "lastHandledReconcileAt")
			return at == token && claim.Is("Synced") && claim.Ready(), fmt.Sprintf("it has answered %q: %s", at, claim)
		}))
	}
	return errors.Join(errs...)
}
