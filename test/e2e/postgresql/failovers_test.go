//go:build e2e

package postgresql

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Targets for failovers by deletion without grace.
const (
	medianFailover = 1500 * time.Millisecond
	// slowFailover is the duration from which a failover's steps are reported.
	slowFailover = 3 * time.Second
)

// How often the primary is deleted under each condition: 50 times in all, and not at all in a quick
// run.
const (
	idleFailovers   = 17
	loadedFailovers = 17
	thawedFailovers = 16
)

// condition sets up what a failover takes place under. The returned function ends it.
type condition func(ctx context.Context) (end func(), err error)

// failsOver deletes the primary without grace many times, each time with a ledger, and adds the
// gaps to those of all earlier failovers.
func (d *database) failsOver(all *[]time.Duration, times int, under condition) check {
	return func(ctx context.Context, n notes) error {
		var gaps []time.Duration
		var errs []error
		stepsOf := map[time.Duration]string{}
		for i := range times {
			gap, steps, err := d.failover(ctx, under)
			if gap > slowFailover {
				n.Addf("failover %d took %.2fs: %s", i+1, gap.Seconds(), steps)
			}
			if err != nil {
				return errors.Join(append(errs, fmt.Errorf("failover %d: %w", i+1, err))...)
			}
			if gap > whenDeleted {
				errs = append(errs, fmt.Errorf("failover %d: for %.2fs no write was acknowledged, %s is the target", i+1, gap.Seconds(), whenDeleted))
			}
			gaps = append(gaps, gap)
			stepsOf[gap] = steps
		}
		*all = append(*all, gaps...)
		slices.Sort(gaps)
		slices.Sort(*all)
		median := harness.Median(*all)
		middle, longest := gaps[len(gaps)/2], gaps[len(gaps)-1]
		n.Addf("%d failovers, median %.2fs (%s), longest %.2fs (%s); median of all %d: %.2fs",
			len(gaps), harness.Median(gaps).Seconds(), stepsOf[middle], longest.Seconds(), stepsOf[longest], len(*all), median.Seconds())
		// The target is for failovers under all conditions.
		if len(*all) == idleFailovers+loadedFailovers+thawedFailovers && median > medianFailover {
			errs = append(errs, fmt.Errorf("half of the failovers took %.2fs or longer, %s is the target", median.Seconds(), medianFailover))
		}
		return errors.Join(errs...)
	}
}

// failover deletes the primary without grace. It returns how long no write was acknowledged, and
// how long each step took.
func (d *database) failover(ctx context.Context, under condition) (time.Duration, string, error) {
	if err := d.ready(ctx); err != nil {
		return 0, "", err
	}
	if err := d.keepLedger(ctx); err != nil {
		return 0, "", err
	}
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return 0, "", err
	}
	old := d.primary()
	end, err := under(ctx)
	if err != nil {
		return 0, "", err
	}
	defer end()
	routes, err := d.followRoutes(ctx)
	if err != nil {
		return 0, "", err
	}
	defer routes.stop()

	deleted := time.Now()
	if err := d.deletePod(ctx, old, new(int64(0))); err != nil {
		return 0, "", err
	}
	if err := d.succeeded(ctx, old); err != nil {
		return 0, "", err
	}
	if err := d.flows(ctx); err != nil {
		return 0, "", err
	}
	end()
	a, err := d.recover(ctx, from)
	if err != nil {
		return a.Gap, "", err
	}
	steps, err := d.breakdown(ctx, old, deleted, a, routes)
	return a.Gap, steps, err
}

// flows waits until writes are acknowledged again.
func (d *database) flows(ctx context.Context) error {
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	return d.ledger.Flows(ctx, soon, now)
}

// breakdown describes the steps of a failover: until the last write, until the leader lock was
// released, until the next server observed that, until it had taken the lock, until it was
// promoted, until the Service led to it, and until a write was acknowledged.
func (d *database) breakdown(ctx context.Context, old *unstructured.Unstructured, deleted time.Time, a harness.Account, routes *routes) (string, error) {
	released, taken, by := d.lockOf(old.GetName(), deleted)
	log, err := d.logSince(ctx, by, deleted)
	if err != nil {
		return "", err
	}
	address := d.address(by)
	if by == "" {
		by = "no other server"
	}
	return by + " took the lock: " + harness.Breakdown(deleted,
		harness.Moment{What: "last write", At: a.Began},
		harness.Moment{What: "lock released", At: released},
		harness.Moment{What: "seen", At: log.first("Got response from", released)},
		harness.Moment{What: "lock taken", At: taken},
		harness.Moment{What: "promoted", At: log.first("database system is ready to accept connections", taken)},
		harness.Moment{What: "Service", At: routes.reached(address, deleted)},
		harness.Moment{What: "first write", At: a.Began.Add(a.Gap)},
	), nil
}

// Patroni's ConfigMaps: leaderName is the leader lock, configName the configuration and the history
// of timelines.
const (
	leaderName = setName + "-leader"
	configName = setName + "-config"
)

// lockOf returns when the leader lock of a holder was released, and when another server took it and
// which one. Only the latter time is on the servers' own clock.
func (d *database) lockOf(holder string, after time.Time) (released, taken time.Time, by string) {
	for _, v := range d.world.History("ConfigMap", leaderName) {
		if v.At.Before(after) || v.Deleted {
			continue
		}
		now := v.Object.GetAnnotations()
		if now["leader"] == holder {
			continue
		}
		if released.IsZero() {
			released = v.At
		}
		if by = now["leader"]; by != "" {
			if at, err := time.Parse(time.RFC3339, now["acquireTime"]); err == nil {
				return released, at, by
			}
			return released, v.At, by
		}
	}
	return released, taken, by
}

// logLines are the lines of a server's log with the times at which they were written.
type logLines []harness.Moment

func (l logLines) first(text string, after time.Time) time.Time {
	for _, line := range l {
		if !line.At.Before(after) && strings.Contains(line.What, text) {
			return line.At
		}
	}
	return time.Time{}
}

func (d *database) logSince(ctx context.Context, pod string, since time.Time) (logLines, error) {
	if pod == "" {
		return nil, nil
	}
	options := &corev1.PodLogOptions{Container: container, Timestamps: true, SinceTime: new(metav1.NewTime(since))}
	stream, err := cluster.Kube.CoreV1().Pods(d.namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the log of pod %s: %w", pod, err)
	}
	defer func() { _ = stream.Close() }()
	var out logLines
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		stamp, text, _ := strings.Cut(lines.Text(), " ")
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			out = append(out, harness.Moment{What: text, At: at})
		}
	}
	return out, lines.Err()
}

// address returns the IP address of a server's pod.
func (d *database) address(pod string) string {
	return harness.Field(d.world.Get("Pod", pod), "status", "podIP")
}

// routes are the addresses that the primary's Service led to since followRoutes, with the times.
type routes struct {
	mu   sync.Mutex
	seen []harness.Moment
	stop func()
}

func (d *database) followRoutes(ctx context.Context) (*routes, error) {
	w, err := cluster.Kube.DiscoveryV1().EndpointSlices(d.namespace).Watch(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + primaryName})
	if err != nil {
		return nil, fmt.Errorf("cannot watch where Service %s leads: %w", primaryName, err)
	}
	r := &routes{stop: w.Stop}
	go func() {
		for e := range w.ResultChan() {
			if slice, ok := e.Object.(*discoveryv1.EndpointSlice); ok && e.Type != watch.Deleted {
				r.add(slice)
			}
		}
	}()
	return r, nil
}

func (r *routes) add(slice *discoveryv1.EndpointSlice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slice.Endpoints {
		for _, a := range e.Addresses {
			r.seen = append(r.seen, harness.Moment{What: a, At: time.Now()})
		}
	}
}

// reached returns when the Service first led to an address.
func (r *routes) reached(address string, after time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.seen {
		if m.What == address && m.At.After(after) {
			return m.At
		}
	}
	return time.Time{}
}

// idle adds no condition.
func idle(context.Context) (func(), error) { return func() {}, nil }

// loaded keeps the API server busy with lists and writes.
func (d *database) loaded(ctx context.Context) (func(), error) {
	return cluster.BusyAPI(ctx, d.namespace+"-load")
}

// frozenBefore is longer than the leader lock is valid: the primary continues in failsafe mode.
const frozenBefore = 25 * time.Second

// thawed freezes the API server for frozenBefore, so that the failover follows its return.
func (d *database) thawed(ctx context.Context) (func(), error) {
	return func() {}, d.frozenAPI(ctx, frozenBefore)
}
