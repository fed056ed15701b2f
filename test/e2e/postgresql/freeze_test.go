//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// frozenFor is longer than Patroni's leader lock is valid.
const frozenFor = time.Minute

// freezes freezes the primary until another server has taken over, and longer. The old primary must
// not take a write when it continues.
func (d *database) freezes(ctx context.Context, n notes) error {
	old := d.primary()
	start := time.Now()
	// Thaw it in any case, because frozen processes would stay behind.
	defer func() { _ = thaw(old) }()
	stopped, err := harness.Signal(old, syscall.SIGSTOP)
	if err != nil {
		return unlessNode(err)
	}
	n.Addf("%d processes", stopped)
	frozen, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := d.succeeded(ctx, old); err != nil {
		return err
	}
	n.Addf("another primary after %.1fs", time.Since(start).Seconds())
	if err := harness.Until(ctx, start.Add(frozenFor)); err != nil {
		return err
	}
	if err := thaw(old); err != nil {
		return err
	}
	thawed := time.Now()
	err = d.world.Await(ctx, settled, "the old primary to be a replica", func() (bool, string) {
		p := d.world.Get("Pod", old.GetName())
		if p == nil {
			return false, "it is gone"
		}
		role := p.GetLabels()[roleLabel]
		return role == "replica" && harness.ClaimOf(p).Is("Ready"), "its role is " + role
	})
	if err != nil {
		return err
	}
	n.Addf("a replica %.1fs after", time.Since(thawed).Seconds())

	a, err := d.ledger.Account(ctx, frozen)
	address := harness.Field(old, "status", "podIP")
	last := 0
	for _, ack := range a.Acks {
		last = max(last, ack.Timeline)
	}
	for _, ack := range a.Acks {
		if ack.Server == address && ack.Timeline < last && ack.Sent > frozen.At {
			return errors.Join(err, fmt.Errorf("the old primary acknowledged a write after it was frozen: %+v", ack))
		}
	}
	return err
}

func thaw(p *unstructured.Unstructured) error {
	_, err := harness.Signal(p, syscall.SIGCONT)
	if errors.Is(err, harness.ErrNotNode) {
		// All processes that were frozen have been killed since.
		return nil
	}
	return err
}
