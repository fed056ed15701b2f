//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// mostServers is the largest number of servers in any check, plus one.
const mostServers = 6

// event is what happens to the database while a ledger is kept.
type event func(ctx context.Context, n notes) error

// under returns a check that causes an event while a ledger is kept. Afterwards every acknowledged
// row has to be there, and the longest time without an acknowledgement must not exceed
// held(target), unless there is no target.
func (d *database) under(target time.Duration, do event) check {
	return func(ctx context.Context, n notes) error {
		_, err := d.account(ctx, n, target, do)
		return err
	}
}

// repeated is under, as often as the suite repeats.
func (d *database) repeated(target time.Duration, do event) check {
	return func(ctx context.Context, n notes) error {
		for range repeats() {
			if _, err := d.account(ctx, n, target, do); err != nil {
				return err
			}
		}
		return nil
	}
}

// undisturbed is under for events in which not even a connection may break.
func (d *database) undisturbed(do event) check {
	return func(ctx context.Context, n notes) error {
		a, err := d.account(ctx, n, whenPlanned, do)
		if broken := a.To.Connections - a.From.Connections; broken > 0 {
			err = errors.Join(err, fmt.Errorf("%d connections broke", broken))
		}
		return err
	}
}

func (d *database) account(ctx context.Context, n notes, target time.Duration, do event) (harness.Account, error) {
	if err := d.ready(ctx); err != nil {
		return harness.Account{}, err
	}
	if err := d.keepLedger(ctx); err != nil {
		return harness.Account{}, err
	}
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return harness.Account{}, err
	}
	start := time.Now()
	err = do(ctx, n)
	if _, skipped := errors.AsType[suite.SkippedError](err); skipped {
		return harness.Account{}, err
	}
	if err != nil {
		// Report what else is wrong too.
		a, aerr := d.recover(ctx, from)
		n.Addf("gap %.2fs, %s", a.Gap.Seconds(), a)
		return a, errors.Join(err, aerr)
	}
	a, err := d.recover(ctx, from)
	target = held(target)
	n.Addf("%s, %s, %s, well after %.0fs", gapOf(a.Gap, target), a, reignsOf(a), time.Since(start).Seconds())
	return a, errors.Join(err, a.Within(target))
}

// held returns the longest gap with which a check passes. In a full run, which needs a machine of
// its own, that is the target. A quick run is for every change on any machine, and checks
// correctness rather than speed: no gap may be longer than the expiry of a leader lock and a
// promotion after it.
func held(target time.Duration) time.Duration {
	if target == noTarget || tests.Full() {
		return target
	}
	return max(target, whenLockRanOut)
}

// recover waits until the state is restored and writes are acknowledged, and returns what happened
// since from.
func (d *database) recover(ctx context.Context, from harness.Mark) (harness.Account, error) {
	if err := d.ready(ctx); err != nil {
		return harness.Account{}, err
	}
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return harness.Account{}, err
	}
	if err := d.ledger.Flows(ctx, soon, now); err != nil {
		return harness.Account{}, err
	}
	return d.ledger.Account(ctx, from)
}

// keepLedger starts a ledger unless there is one, and waits until it has rows acknowledged.
func (d *database) keepLedger(ctx context.Context) error {
	if d.ledger == nil {
		l, err := harness.StartLedger(ctx, cluster, d.world, harness.Database{
			Secret: connection, Host: setName + "-%d." + setName + "." + d.namespace + ".svc", Servers: mostServers,
		})
		if err != nil {
			return err
		}
		d.ledger = l
	}
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	return d.ledger.Flows(ctx, soon, now)
}

// stopLedger stops the ledger. There is none if a check runs alone.
func (d *database) stopLedger(ctx context.Context) error {
	if d.ledger == nil {
		return nil
	}
	if err := d.ledger.Stop(ctx, d.world); err != nil {
		return err
	}
	d.ledger = nil
	return nil
}

func gapOf(gap, target time.Duration) string {
	if target == 0 {
		return fmt.Sprintf("gap %.2fs", gap.Seconds())
	}
	return fmt.Sprintf("gap %.2fs of %.0fs", gap.Seconds(), target.Seconds())
}

// reignsOf describes the reigns of an interval by their timelines.
func reignsOf(a harness.Account) string {
	var out []string
	for _, r := range a.Reigns {
		out = append(out, strconv.Itoa(r.Timeline))
	}
	return "timeline " + strings.Join(out, "→")
}
