//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// isProtected tries to delete a claim that production protects.
func (d *database) isProtected(ctx context.Context, n notes) error {
	before := d.uids()
	err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName)
	if err == nil {
		return errors.New("the claim may be deleted")
	}
	n.Addf("%q", err.Error())
	if !strings.Contains(err.Error(), "deletionProtection") {
		return fmt.Errorf("the refusal does not name deletionProtection: %w", err)
	}
	if u, err := cluster.Get(ctx, "DatabaseCluster", d.namespace, claimName); err != nil || u == nil || u.GetDeletionTimestamp() != nil {
		return errors.Join(err, errors.New("the claim is going all the same"))
	}
	if after := d.uids(); !maps.Equal(before, after) {
		return fmt.Errorf("the pods were %v, are %v", before, after)
	}
	return nil
}

// comesBack deletes the claim and applies it again, which uses the retained volumes.
func (d *database) comesBack(ctx context.Context, n notes) error {
	_, err := d.account(ctx, n, noTarget, func(context.Context, notes) error { return nil })
	if err != nil {
		return err
	}
	if err := d.stopLedger(ctx); err != nil {
		return err
	}
	// A row that was sent and never acknowledged may still be written later.
	before, err := d.ask(ctx, "app", countLedger)
	if err != nil {
		return err
	}
	volumes := d.volumes()
	took, err := d.end(ctx, stays(volumes)...)
	n.Addf("gone after %.1fs", took.Seconds())
	if err != nil {
		return err
	}
	start := time.Now()
	if err := d.file(ctx, nil); err != nil {
		return err
	}
	if err := d.ready(ctx); err != nil {
		return err
	}
	n.Addf("back after %.1fs", time.Since(start).Seconds())
	after, err := d.ask(ctx, "app", countLedger)
	if err != nil {
		return err
	}
	if kept, err := atLeast(after, before); err != nil || !kept {
		return errors.Join(err, fmt.Errorf("there were %s rows, and are %s", before, after))
	}
	// The Secret of the new claim has to work with the old volumes.
	if err := d.keepLedger(ctx); err != nil {
		return err
	}
	n.Addf("%s rows kept", after)
	return nil
}

// atLeast compares numbers as PostgreSQL writes them.
func atLeast(number, least string) (bool, error) {
	n, err := strconv.Atoi(number)
	l, lerr := strconv.Atoi(least)
	return n >= l, errors.Join(err, lerr)
}

const countLedger = "SELECT count(*) FROM ledger"

// stays returns the objects that stay after the deletion of a claim in production.
func stays(volumes map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(volumes)) {
		out = append(out, "PersistentVolumeClaim "+name)
	}
	return out
}

// end deletes the claim and waits until its objects are removed. It returns an error if more, or
// less, is left than what stays.
func (d *database) end(ctx context.Context, stays ...string) (time.Duration, error) {
	if d.client != nil {
		if err := d.client.Stop(ctx); err != nil {
			return 0, err
		}
		d.client = nil
	}
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"deletionProtection": false}); err != nil {
		return 0, err
	}
	// The Usage that protects the claim is removed a moment later.
	err := harness.Await(ctx, soon, "the claim to take its deletion", func(ctx context.Context) (bool, error) {
		err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, claimName)
		return err == nil, err
	})
	if err != nil {
		return 0, err
	}
	err = cluster.AwaitEnd(ctx, d.world, "DatabaseCluster", d.namespace, claimName, settled, stays)
	return time.Since(start), err
}
