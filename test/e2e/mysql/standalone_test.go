//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// standsAlone has one server run without a group, and become three: it forms a group while it serves.
func (d *database) standsAlone(ctx context.Context, n notes) error {
	if err := d.startStore(ctx); err != nil {
		return err
	}
	if err := errors.Join(d.change(ctx, harness.Patch{"size": 1}), d.whole(ctx, 1)); err != nil {
		return err
	}
	// The last one of three is a group still, until it is started again.
	if err := errors.Join(d.losesPrimary(ctx, n), d.whole(ctx, 1)); err != nil {
		return err
	}
	if err := d.keepLedger(ctx); err != nil {
		return err
	}
	out, err := d.sql(ctx, claimName, "SELECT INSTR(@@gtid_executed, @@server_uuid) > 0")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != "1" {
		return fmt.Errorf("the only server writes as the member of a group: whether it has transactions of its own is %q", out)
	}
	start := time.Now()
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(d.change(ctx, harness.Patch{"size": baseSize}), d.whole(ctx, baseSize)); err != nil {
		return err
	}
	a, err := d.ledger.Account(ctx, from)
	if err != nil {
		return err
	}
	n.Addf("to %d in %.0fs, gap %.2fs", baseSize, time.Since(start).Seconds(), a.Gap.Seconds())
	if a.Gap > whenFormed {
		return fmt.Errorf("for %.2fs no write was acknowledged while the group was formed, %s is the target", a.Gap.Seconds(), whenFormed)
	}
	return nil
}
