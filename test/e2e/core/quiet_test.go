//go:build e2e

package core

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Limits for claims at rest.
const (
	rest = 2 * time.Minute

	// Server-side applies a minute for all composed resources of an EcommercePlatform.
	developmentApplies = 5
	productionApplies  = 8
)

// checkBucket returns an error if the bucket of the EcommercePlatform was empty at a time.
func checkBucket(n notes, b *harness.Bucket) error {
	words, err := b.Check(tests.Full())
	n.Addf("EcommercePlatform: %s", words)
	return err
}

// noBreaker checks that no circuit breaker of the claims has opened since they were created, and that none
// of the EcommercePlatform would have with Crossplane's defaults, while no other one changed.
func noBreaker(s *shop) func(context.Context, notes) error {
	return func(ctx context.Context, n notes) error {
		if err := s.ready(ctx, soon); err != nil {
			return err
		}
		if err := checkBucket(n, s.bucket); err != nil {
			return err
		}
		for _, c := range [][2]string{{"EcommercePlatform", claimName}, {"DatabaseCluster", databaseClaim}, {"WebApp", backendClaim}, {"WebApp", frontendClaim}} {
			n.Addf("%s %s: %d writes", c[0], c[1], len(s.world.History(c[0], c[1])))
		}
		return s.world.NeverFalse("Responsive")
	}
}

// rests checks that few objects are applied while this claim, and all others of the cluster, are at
// rest.
func rests(s *shop, bound float64) func(context.Context, notes) error {
	return func(ctx context.Context, n notes) error {
		if err := s.ready(ctx, soon); err != nil {
			return err
		}
		before, err := atRest(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rest):
		}
		after, err := applies(ctx)
		if err != nil {
			return err
		}
		a := (after - before) / rest.Minutes()
		n.Addf("%.1f applies a minute", a)
		if a > bound {
			return fmt.Errorf("want at most %.0f applies a minute at rest, got %.1f", bound, a)
		}
		return nil
	}
}

// applies returns how many server-side applies the API server has answered, of all clients.
func applies(ctx context.Context) (float64, error) {
	m, err := cluster.APIServerMetrics(ctx)
	if err != nil {
		return 0, err
	}
	return m.Sum("apiserver_request_total", map[string]string{"verb": "APPLY"}), nil
}

// atRest waits until no more applies follow after Ready, and returns their number until then. A database
// reports once more when the WAL after its first backup is archived, within a minute.
func atRest(ctx context.Context) (float64, error) {
	const still = time.Minute
	// A circuit breaker that quick checks before have opened closes after five minutes. Until then its claim is
	// composed often.
	const closed = 6 * time.Minute
	last, since := -1.0, time.Now()
	err := wait.For(func(ctx context.Context) (bool, error) {
		now, err := applies(ctx)
		if err != nil {
			return false, err
		}
		if now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) >= still, nil
	}, wait.WithContext(ctx), wait.WithTimeout(started+closed), wait.WithInterval(time.Second))
	if err != nil {
		return 0, fmt.Errorf("the shop does not come to rest: %w", err)
	}
	return last, nil
}
