//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Durations of faults of the network: one after which the group has expelled a server, one that it
// overlooks, and one that is longer than the group waits for a server that it suspects.
const (
	cutFor   = 20 * time.Second
	blipFor  = 2 * time.Second
	hungFor  = 8 * time.Second
	blipsFor = 3
)

// cut blocks the traffic between a pod and others for a time.
func (d *database) cut(ctx context.Context, length time.Duration, from *unstructured.Unstructured, others ...*unstructured.Unstructured) error {
	heal, err := d.separate(ctx, from, others...)
	if err != nil {
		return err
	}
	return errors.Join(harness.Until(ctx, time.Now().Add(length)), heal())
}

// separate blocks the traffic between a pod and others until heal is called.
func (d *database) separate(ctx context.Context, from *unstructured.Unstructured, others ...*unstructured.Unstructured) (heal func() error, err error) {
	var heals []func(context.Context) error
	// Restore the network also after an interrupt.
	heal = func() (err error) {
		for _, each := range heals {
			err = errors.Join(err, each(context.WithoutCancel(ctx)))
		}
		return err
	}
	for _, p := range others {
		each, err := harness.Cut(ctx, p, harness.Field(from, "status", "podIP"))
		if err != nil {
			return nil, errors.Join(unlessNode(err), heal())
		}
		heals = append(heals, each)
	}
	return heal, nil
}

// others returns the pods of all servers but one.
func (d *database) others(than *unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, p := range d.pods() {
		if p.GetUID() != than.GetUID() {
			out = append(out, p)
		}
	}
	return out
}

// losesNetwork cuts the network between two servers. The primary may be one of them.
func (d *database) losesNetwork(ctx context.Context, _ notes, draw *rand.Rand) error {
	pods := d.pods()
	draw.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
	return d.cut(ctx, cutFor, pods[0], pods[1])
}

// isolated cuts the primary off from the other servers, while clients and the API server reach it.
func (d *database) isolated(ctx context.Context, _ notes) error {
	old := d.primary()
	if err := d.cut(ctx, cutFor, old, d.others(old)...); err != nil {
		return err
	}
	return d.succeeded(ctx, old)
}

// misses: a replica that was cut off while the others continued, and is then the only server that runs, lacks what they have
// acknowledged. It does not lead, and the claim says what it waits for.
func (d *database) misses(ctx context.Context, n notes) (err error) {
	replica := d.with("replica")[0]
	others := d.others(replica)
	heal, err := d.separate(ctx, replica, others...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, heal()) }()
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	if err := d.ledger.Flows(ctx, soon, now); err != nil {
		return err
	}
	err = d.world.Await(ctx, settled, replica.GetName()+" to be missing", func() (bool, string) {
		c := d.status().Condition("ReplicationHealthy")
		return c.Status == metav1.ConditionFalse && strings.Contains(c.Message, replica.GetName()), c.Message
	})
	if err != nil {
		return err
	}
	// No new pod is scheduled, so the others stay down.
	defer func() { err = errors.Join(err, cluster.Cordon(context.WithoutCancel(ctx), false)) }()
	if err := cluster.Cordon(ctx, true); err != nil {
		return err
	}
	for _, p := range others {
		if err := d.deletePod(ctx, p); err != nil {
			return err
		}
	}
	for _, p := range others {
		if err := d.replaced(ctx, "Pod", p); err != nil {
			return err
		}
	}
	if err := heal(); err != nil {
		return err
	}
	heal = func() error { return nil }
	start := time.Now()
	if err := d.says(ctx, settled, "Waiting for the contents of volume claim"); err != nil {
		return err
	}
	n.Addf("reported after %.0fs: %s", time.Since(start).Seconds(), d.status().Status.Message)
	return d.world.Hold(ctx, leaderless, "no server leads", func() (bool, string) {
		leads := d.with("primary")
		return len(leads) == 0, fmt.Sprintf("%d do, of %v; %s", len(leads), d.roles(), d.status())
	})
}

// blips: short losses of the network have no server join again, and none is copied.
func (d *database) blips(ctx context.Context, _ notes) error {
	start := time.Now()
	for range blipsFor {
		old := d.primary()
		if err := d.cut(ctx, blipFor, old, d.others(old)...); err != nil {
			return err
		}
		// Writes go on before the next one.
		now, err := d.ledger.Mark(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(d.ledger.Flows(ctx, soon, now), d.whole(ctx, baseSize)); err != nil {
			return err
		}
	}
	incremental, copied, err := d.joins(ctx, start)
	if err == nil && incremental+copied > 0 {
		return errors.New("servers left the group and joined again")
	}
	return err
}
