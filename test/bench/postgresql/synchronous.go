package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// turn turns synchronous replication on or off, and waits up to a minute until the primary uses
// it or no longer does.
func (b *bench) turn(ctx context.Context, on bool) error {
	if err := b.change(ctx, harness.Patch{"synchronous": on}); err != nil {
		return err
	}
	have := ""
	err := wait.For(func(ctx context.Context) (bool, error) {
		out, err := b.sql(ctx, "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
		if err != nil {
			return false, err
		}
		have = strings.TrimSpace(out)
		return have == map[bool]string{true: "t", false: "f"}[on], nil
	}, wait.WithContext(ctx), wait.WithTimeout(time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("waited a minute for synchronous replication to be %t: it is %q: %w", on, have, err)
	}
	return nil
}
