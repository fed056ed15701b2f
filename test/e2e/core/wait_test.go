//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// waitsForEdit checks that `kubectl wait` right after an edit returns once the edit is applied, and
// not at once because the claim was Ready before it.
func waitsForEdit(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	var errs []error
	for _, replicas := range []string{"3", "1"} {
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
