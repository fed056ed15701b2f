//go:build e2e

package postgresql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// wakings of a frozen primary in one check.
const wakings = 20

// Bounds of one: the lock lives for 20 s and is renewed every five, and a primary that
// has lost it stops at once, not after another loop.
const (
	lockEnds   = 30 * time.Second
	leadsStill = 4 * time.Second
)

// wakesOften freezes the primary, with its Patroni, until another server takes the lock,
// and wakes it up in that moment.
func (d *database) wakesOften(ctx context.Context, n notes) error {
	var gaps, stops []time.Duration
	for i := range wakings {
		gap, stop, err := d.wakes(ctx)
		if err != nil {
			return fmt.Errorf("waking %d: %w", i+1, err)
		}
		gaps, stops = append(gaps, gap), append(stops, stop)
	}
	n.Addf("%d wakings, longest gap %.2fs, led still for %.2fs at most", wakings, slices.Max(gaps).Seconds(), slices.Max(stops).Seconds())
	if longest := slices.Max(gaps); longest > whenFrozen {
		return fmt.Errorf("for %.2fs no write was acknowledged, %s is the target", longest.Seconds(), whenFrozen)
	}
	return nil
}

// wakes is one of them. It returns for how long no write was acknowledged, and how long
// the old primary took it that it led.
func (d *database) wakes(ctx context.Context) (gap, stop time.Duration, err error) {
	if err := d.ready(ctx); err != nil {
		return 0, 0, err
	}
	if err := d.keepLedger(ctx); err != nil {
		return 0, 0, err
	}
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return 0, 0, err
	}
	old := d.primary()
	// Whatever comes: a frozen process would stay behind.
	defer func() { _ = thaw(old) }()
	frozen := time.Now()
	if _, err := harness.Signal(old, syscall.SIGSTOP); err != nil {
		return 0, 0, unlessNode(err)
	}
	err = d.world.Await(ctx, lockEnds, "the lock to be taken from "+old.GetName(), func() (bool, string) {
		_, _, by := d.lockOf(old.GetName(), frozen)
		return by != "", "it holds it still"
	})
	if err != nil {
		return 0, 0, err
	}
	if err := thaw(old); err != nil {
		return 0, 0, err
	}
	woken := time.Now()
	err = d.world.Await(ctx, soon, "the old primary to stop leading", func() (bool, string) {
		p := d.world.Get("Pod", old.GetName())
		role := patroniRole(p)
		return role != "primary", "its role is " + role
	})
	if err != nil {
		return 0, 0, err
	}
	stop = time.Since(woken)
	a, err := d.recover(ctx, from)
	if stop > leadsStill {
		err = errors.Join(err, fmt.Errorf("the old primary led for %.2fs more: it did not compare the newest lock", stop.Seconds()))
	}
	return a.Gap, stop, err
}

// patroniRole is what Patroni wrote last on its pod.
func patroniRole(p *unstructured.Unstructured) string {
	if p == nil {
		return ""
	}
	status := struct {
		Role string `json:"role"`
	}{}
	// What cannot be read is no role.
	_ = json.Unmarshal([]byte(p.GetAnnotations()["status"]), &status)
	return status.Role
}
