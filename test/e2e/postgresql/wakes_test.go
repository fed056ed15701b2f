//go:build e2e

package postgresql

import (
	"context"
	"encoding/json"
	"fmt"
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
	longest, last := waking{}, time.Duration(0)
	for i := range wakings {
		w, err := d.wakes(ctx)
		if err != nil {
			return fmt.Errorf("waking %d: %w", i+1, err)
		}
		if last = max(last, w.led); w.gap > longest.gap {
			longest = w
		}
	}
	n.Addf("%d wakings, longest gap %.2fs (%s), led still for %.2fs at most", wakings, longest.gap.Seconds(), longest.steps, last.Seconds())
	if longest.gap > whenFrozen {
		return fmt.Errorf("for %.2fs no write was acknowledged, %s is the target", longest.gap.Seconds(), whenFrozen)
	}
	return nil
}

// waking of a frozen primary: for how long no write was acknowledged, where that time
// went, and for how long it still took itself for the leader.
type waking struct {
	gap, led time.Duration
	steps    string
}

func (d *database) wakes(ctx context.Context) (waking, error) {
	if err := d.ready(ctx); err != nil {
		return waking{}, err
	}
	if err := d.keepLedger(ctx); err != nil {
		return waking{}, err
	}
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return waking{}, err
	}
	routes, err := d.followRoutes(ctx)
	if err != nil {
		return waking{}, err
	}
	defer routes.stop()
	old := d.primary()
	// Whatever comes: a frozen process would stay behind.
	defer func() { _ = thaw(old) }()
	frozen := time.Now()
	if _, err := harness.Signal(old, syscall.SIGSTOP); err != nil {
		return waking{}, unlessNode(err)
	}
	err = d.world.Await(ctx, lockEnds, "the lock to be taken from "+old.GetName(), func() (bool, string) {
		_, _, by := d.lockOf(old.GetName(), frozen)
		return by != "", "it holds it still"
	})
	if err != nil {
		return waking{}, err
	}
	if err := thaw(old); err != nil {
		return waking{}, err
	}
	woken := time.Now()
	err = d.world.Await(ctx, soon, "the old primary to stop leading", func() (bool, string) {
		role := patroniRole(d.world.Get("Pod", old.GetName()))
		return role != "primary", "its role is " + role
	})
	if err != nil {
		return waking{}, err
	}
	w := waking{led: time.Since(woken)}
	a, err := d.recover(ctx, from)
	if w.gap = a.Gap; err != nil {
		return w, err
	}
	if w.led > leadsStill {
		return w, fmt.Errorf("the old primary led for %.2fs more: it did not compare the newest lock", w.led.Seconds())
	}
	w.steps, err = d.breakdown(ctx, old, frozen, a, routes)
	return w, err
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
