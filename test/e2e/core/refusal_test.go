//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// refused makes a change that no schema rejects, waits until the claim reports what is wrong, and
// undoes it. Meanwhile no pod may be replaced.
func refused(ctx context.Context, n notes, want string, do, undo func(context.Context) error) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	before := uids(dev)
	start := time.Now()
	err := do(ctx)
	if err == nil {
		err = dev.world.Await(ctx, settled, fmt.Sprintf("the claim to say %q", want), func() (bool, string) {
			// Crossplane writes conditions a moment after the rest of a status.
			c := dev.status()
			text := words(c)
			return strings.Contains(text, want) && (!c.Is("Accepted") || !c.Is("Ready")), text
		})
	}
	if err == nil {
		n.Addf("said after %.1fs", time.Since(start).Seconds())
	}
	id, oerr := dev.order(ctx, "a-customer-meanwhile")
	err = errors.Join(err, oerr)
	if oerr == nil {
		err = errors.Join(err, dev.serves(ctx, "a-customer-meanwhile", id))
	}
	if after := uids(dev); !slices.Equal(before, after) {
		err = errors.Join(err, fmt.Errorf("the pods were %v, are %v", before, after))
	}

	start = time.Now()
	if uerr := undo(ctx); uerr != nil {
		return errors.Join(err, uerr)
	}
	rerr := dev.ready(ctx, settled)
	n.Addf("accepted again after %.1fs", time.Since(start).Seconds())
	if after := uids(dev); !slices.Equal(before, after) {
		rerr = errors.Join(rerr, fmt.Errorf("after it was undone, the pods are %v, were %v", after, before))
	}
	return errors.Join(err, rerr)
}

// words returns the messages in the status of a claim.
func words(c harness.Claim) string {
	texts := []string{c.Status.Message}
	for _, cond := range c.Status.Conditions {
		texts = append(texts, fmt.Sprintf("%s %s: %s", cond.Type, cond.Status, cond.Message))
	}
	return strings.Join(texts, "\n")
}

func refusesSchedule(ctx context.Context, n notes) error {
	job := func(schedule string) func(context.Context) error {
		return func(ctx context.Context) error {
			return dev.change(ctx, harness.Patch{"backend": harness.Patch{"cronJobs": []any{
				harness.Patch{"name": "prune", "schedule": schedule, "args": []any{"prune"}},
			}}})
		}
	}
	return refused(ctx, n, `Accepted False: backend.cronJobs prune: schedule "61 * * * *" is no cron expression`, job("61 * * * *"), job("0 4 * * *"))
}

func refusesVersion(ctx context.Context, n notes) error {
	version := func(v string) func(context.Context) error {
		return func(ctx context.Context) error {
			return dev.change(ctx, harness.Patch{"database": harness.Patch{"version": v}})
		}
	}
	// The claim of the database is refused, and the EcommercePlatform waits for it.
	return refused(ctx, n, "version may not go back: 17.", version("15"), version("17"))
}
