//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// leftAlone waits until Crossplane has left the claim alone for a while: an edit during a pass may be
// reported as Ready for a moment (docs/upstream.md).
func leftAlone(ctx context.Context, s *shop) error {
	const still = 3 * time.Second
	last, since := 0, time.Now()
	err := wait.For(func(context.Context) (bool, error) {
		if now := len(s.world.History("EcommercePlatform", claimName)); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= still, nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(100*time.Millisecond))
	if err != nil {
		return fmt.Errorf("Crossplane does not leave the claim alone: %w", err)
	}
	return nil
}

// waitsForEdit checks that `kubectl wait` right after an edit returns once the edit is applied, and
// not at once because the claim was Ready before it.
func waitsForEdit(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	var errs []error
	for _, replicas := range []string{"3", "1"} {
		if err := leftAlone(ctx, dev); err != nil {
			return err
		}
		start := time.Now()
		patch := fmt.Sprintf(`{"spec":{"backend":{"replicas":%s}}}`, replicas)
		if _, err := harness.Kubectl(ctx, "patch", "ecp", claimName, "--namespace", dev.namespace, "--type=merge", "--patch", patch); err != nil {
			return err
		}
		if _, err := harness.Kubectl(ctx, "wait", "--for=condition=Ready", "ecp/"+claimName, "--namespace", dev.namespace, "--timeout="+settled.String()); err != nil {
			return err
		}
		took := time.Since(start)
		for _, of := range []struct{ object, path string }{
			{"wa/" + backendClaim, "{.status.availableReplicas}"},
			{"deployment/" + backendWeb, "{.status.availableReplicas}"},
		} {
			have, err := harness.Kubectl(ctx, "get", of.object, "--namespace", dev.namespace, "--output=jsonpath="+of.path)
			if err != nil {
				return err
			}
			if have = strings.TrimSpace(have); have != replicas {
				errs = append(errs, fmt.Errorf("kubectl wait returns after %.1fs, and %s has %q replicas instead of %s", took.Seconds(), of.object, have, replicas))
			}
		}
		n.Addf("to %s %.1fs", replicas, took.Seconds())
	}
	return errors.Join(errs...)
}
