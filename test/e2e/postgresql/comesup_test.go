//go:build e2e

package postgresql

import (
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

func (d *database) comesUp(ctx context.Context, n notes) error {
	start := time.Now()
	if err := d.claim(ctx, nil); err != nil {
		return err
	}
	if err := d.whole(ctx, 1); err != nil {
		d.broken = ctx.Err() == nil
		return err
	}
	n.Addf("Ready after %.1fs", time.Since(start).Seconds())
	u := d.world.Get("DatabaseCluster", claimName)
	for field, want := range map[string]string{
		"phase": "Running", "primary": server(0), "timeline": "1", "endpoint": primaryName + "." + d.namespace + ".svc:5432", "connectionSecret": connection,
	} {
		if have := harness.Field(u, "status", field); have != want {
			return fmt.Errorf("status.%s is %q, not %q", field, have, want)
		}
	}
	return cluster.AuditRestricted(ctx, d.namespace)
}
