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

// FillBucket returns a bucket that is taken to be full now, and follows it until Stop is called.
func (c *Cluster) FillBucket(ctx context.Context, kind string) (*Bucket, error) {
	b := &Bucket{cluster: c, controller: "composite/" + kinds[kind].GroupResource().String(), done: make(chan struct{}), lowest: BucketBurst}
	last, err := b.events(ctx)
	if err != nil {
		return nil, err
	}
	// The check that fills it may end before Stop is called.
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

// Stop ends the reading, and returns how many tokens were taken, and how many were left at least.
func (b *Bucket) Stop() (taken, lowest float64, err error) {
	b.end()
	<-b.done
	return b.taken, b.lowest, b.err
}
