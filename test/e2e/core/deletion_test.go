//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// end deletes the claim and waits until its objects are removed. It returns an error if more, or
// less, is left than what stays.
func end(ctx context.Context, s *shop, stays ...string) (time.Duration, error) {
	if err := s.ready(ctx, settled); err != nil {
		return 0, err
	}
	if err := s.client.Stop(ctx); err != nil {
		return 0, err
	}
	s.client = nil
	start := time.Now()
	if err := cluster.Delete(ctx, "EcommercePlatform", s.namespace, claimName); err != nil {
		return 0, err
	}
	err := cluster.AwaitEnd(ctx, s.world, "EcommercePlatform", s.namespace, claimName, settled, stays)
	return time.Since(start), err
}

func leavesNothing(ctx context.Context, n notes) error {
	took, err := end(ctx, dev)
	n.Addf("gone after %.1fs", took.Seconds())
	return err
}

// neverRecreated checks that no composed object was ever created twice. Jobs are an exception:
// there is a migration for each image. Objects that a check removed on purpose do not exist any
// more.
func neverRecreated(ctx context.Context, _ notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	var errs []error
	for _, k := range dev.world.Keys() {
		h := dev.world.History(k.Kind, k.Name)
		if composed(h[0]) && k.Kind != "Job" && h[0].Object.GetUID() != h[len(h)-1].Object.GetUID() {
			errs = append(errs, fmt.Errorf("%s was made again", k))
		}
	}
	return errors.Join(errs...)
}
