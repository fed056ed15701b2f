//go:build e2e

package core

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
)

// Limits for claims at rest.
const (
	rest = 2 * time.Minute

	// Server-side applies a minute for all composed resources of an EcommercePlatform.
	developmentApplies = 5
	productionApplies  = 8

	// The bucket of Crossplane's circuit breaker with its defaults: of the embedded cluster it has more, so
	// that checks can follow each other at once.
	bucketBurst  = 100
	bucketRefill = 1 // tokens a second
)

// tokens returns how many events of EcommercePlatforms Crossplane's circuit breaker has counted.
func tokens(ctx context.Context) (float64, error) {
	pods, err := cluster.Kube.CoreV1().Pods("crossplane-system").List(ctx, metav1.ListOptions{LabelSelector: "app=crossplane"})
	if err != nil {
		return 0, fmt.Errorf("cannot list the pods of Crossplane: %w", err)
	}
	sum := 0.0
	for i := range pods.Items {
		m, err := cluster.PodMetrics(ctx, "crossplane-system", pods.Items[i].Name, "8080")
		if err != nil {
			return 0, err
		}
		sum += m.Sum("circuit_breaker_events_total", map[string]string{"controller": "composite/ecommerceplatforms.platform.example.com"})
	}
	return sum, nil
}

// bucket is that of the EcommercePlatforms, which one claim alone is using.
type bucket struct {
	taken float64
	at    time.Time
}

// fill returns a bucket that is taken to be full now.
func fill(ctx context.Context) (bucket, error) {
	taken, err := tokens(ctx)
	return bucket{taken: taken, at: time.Now()}, err
}

// left returns an error if the bucket would be empty now with Crossplane's defaults, which opens the circuit
// breaker. Most tokens are taken at the end of whatever a claim does, so it was never emptier.
func (b bucket) left(ctx context.Context, n notes) error {
	taken, err := tokens(ctx)
	if err != nil {
		return err
	}
	left := bucketBurst + bucketRefill*time.Since(b.at).Seconds() - (taken - b.taken)
	n.Addf("%.0f tokens of the EcommercePlatform, %.0f left", taken-b.taken, left)
	if left < 0 {
		return fmt.Errorf("the EcommercePlatform took %.0f tokens of Crossplane's circuit breaker in %.1fs, which opens it with the defaults", taken-b.taken, time.Since(b.at).Seconds())
	}
	return nil
}

// noBreaker checks that no circuit breaker of the claims has opened since they were created, and that none
// of the EcommercePlatform would have with Crossplane's defaults, while no other one changed.
func noBreaker(s *shop) func(context.Context, notes) error {
	return func(ctx context.Context, n notes) error {
		if err := s.ready(ctx, soon); err != nil {
			return err
		}
		if err := s.bucket.left(ctx, n); err != nil {
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
	}, wait.WithContext(ctx), wait.WithTimeout(started), wait.WithInterval(time.Second))
	if err != nil {
		return 0, fmt.Errorf("the shop does not come to rest: %w", err)
	}
	return last, nil
}
