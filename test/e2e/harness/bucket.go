package harness

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The bucket of a claim's circuit breaker with Crossplane's defaults: BucketBurst tokens, of which each
// event takes one, and one is refilled each second. That of the embedded cluster has more, so that checks
// can follow each other at once.
const (
	BucketBurst  = 100
	bucketRefill = 1
)

// Bucket is the bucket of all claims of a kind, which one claim alone is using, as it would be with
// Crossplane's defaults. It is read twice a second.
type Bucket struct {
	cluster    *Cluster
	controller string

	end    func()
	done   chan struct{}
	err    error
	taken  float64
	lowest float64
}

// FillBucket returns a bucket that is taken to be full now, and follows it until End or Check is called.
func (c *Cluster) FillBucket(ctx context.Context, kind string) (*Bucket, error) {
	b := &Bucket{cluster: c, controller: "composite/" + kinds[kind].GroupResource().String(), done: make(chan struct{}), lowest: BucketBurst}
	last, err := b.events(ctx)
	if err != nil {
		return nil, err
	}
	// The check that fills it may end before the bucket is checked.
	ctx, b.end = context.WithCancel(context.WithoutCancel(ctx))
	go b.follow(ctx, last)
	return b, nil
}

// events returns how many events of claims of the kind Crossplane's circuit breaker has counted.
func (b *Bucket) events(ctx context.Context) (float64, error) {
	const namespace = "crossplane-system"
	pods, err := b.cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=crossplane"})
	if err != nil {
		return 0, fmt.Errorf("cannot list the pods of Crossplane: %w", err)
	}
	sum := 0.0
	for i := range pods.Items {
		m, err := b.cluster.PodMetrics(ctx, namespace, pods.Items[i].Name, "8080")
		if err != nil {
			return 0, err
		}
		sum += m.Sum("circuit_breaker_events_total", map[string]string{"controller": b.controller})
	}
	return sum, nil
}

func (b *Bucket) follow(ctx context.Context, last float64) {
	defer close(b.done)
	level, at := float64(BucketBurst), time.Now()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := b.events(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.err = err
			return
		}
		level = min(BucketBurst, level+bucketRefill*time.Since(at).Seconds()) - (now - last)
		b.taken += now - last
		b.lowest, last, at = min(b.lowest, level), now, time.Now()
	}
}

// End ends the reading. What was read stays.
func (b *Bucket) End() { b.end() }

// Check ends the reading, and describes it. It returns an error if the bucket was empty at a time, which opens
// the circuit breaker. That is for a full run, which needs a machine of its own. A quick run is for every change
// on any machine, and may take a quarter more: of a shop that takes 99 to 111 tokens 125 were seen once, on the
// first start after an installation.
func (b *Bucket) Check(full bool) (string, error) {
	b.end()
	<-b.done
	words := fmt.Sprintf("%.0f tokens, %.0f left at least", b.taken, b.lowest)
	least := 0.0
	if !full {
		least = -BucketBurst / 4
	}
	if b.err == nil && b.lowest < least {
		return words, fmt.Errorf("the claim took %.0f tokens of Crossplane's circuit breaker, which opens it with the defaults", b.taken)
	}
	return words, b.err
}
