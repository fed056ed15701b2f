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

// bucket is that of the EcommercePlatforms, which one claim alone is using, as it would be with Crossplane's
// defaults. It is read twice a second.
type bucket struct {
	end    func()
	done   chan struct{}
	err    error
	taken  float64
	lowest float64
}

// fill returns a bucket that is taken to be full now, and follows it until stop is called.
func fill(ctx context.Context) (*bucket, error) {
	last, err := tokens(ctx)
	if err != nil {
		return nil, err
	}
	// The check that fills it ends before the claim's bucket is judged.
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	b := &bucket{end: end, done: make(chan struct{}), lowest: bucketBurst}
	go b.follow(ctx, last)
	return b, nil
}

func (b *bucket) follow(ctx context.Context, last float64) {
	defer close(b.done)
	level, at := float64(bucketBurst), time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := tokens(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.err = err
			return
		}
		level = min(bucketBurst, level+bucketRefill*time.Since(at).Seconds()) - (now - last)
		b.taken += now - last
		b.lowest, last, at = min(b.lowest, level), now, time.Now()
	}
}

// stop ends the reading.
func (b *bucket) stop() {
	b.end()
	<-b.done
}

// leastTokens returns how many tokens have to be left. In a full run, which needs a machine of its own,
// that is none below zero. A quick run is for every change on any machine: of a shop that takes 99 to 111
// tokens 125 were seen once, on the first start after an installation.
func leastTokens() float64 {
	if tests.Full() {
		return 0
	}
	return -bucketBurst / 4
}

// check returns an error if the bucket was empty at a time, which opens the circuit breaker.
func (b *bucket) check(n notes) error {
	b.stop()
	n.Addf("%.0f tokens of the EcommercePlatform, %.0f left at least", b.taken, b.lowest)
	switch {
	case b.err != nil:
		return b.err
	case b.lowest < leastTokens():
		return fmt.Errorf("the EcommercePlatform took %.0f tokens of Crossplane's circuit breaker, which opens it with the defaults", b.taken)
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
		if err := s.bucket.check(n); err != nil {
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
