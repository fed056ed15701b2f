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

// wakings is how often the primary is frozen and woken in one check.
const wakings = 20

// Limits of one waking: the leader lock is valid for 20 s and renewed every 5 s, and a primary that
// has lost it stops at once and not after another loop.
const (
	lockEnds   = 30 * time.Second
	leadsStill = 4 * time.Second
)

// wakesOften freezes the primary and its Patroni until another server takes the leader lock, and
// wakes them at that moment.
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

// waking is the result of one waking: gap is how long no write was acknowledged, steps where that
// time went, and led how long the woken server still acted as the primary.
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
	// Thaw it in any case, because frozen processes would stay behind.
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

// patroniRole returns the role that Patroni wrote last into the annotations of its pod.
func patroniRole(p *unstructured.Unstructured) string {
	if p == nil {
		return ""
	}
	status := struct {
		Role string `json:"role"`
	}{}
	// A status that cannot be decoded has no role.
	_ = json.Unmarshal([]byte(p.GetAnnotations()["status"]), &status)
	return status.Role
}
