package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// result is what was measured with a number of claims.
type result struct {
	kind  kind
	n     int
	ready time.Duration

	filing  usage  // until all are Ready
	resting usage  // right after that
	steady  *usage // after settledAfter, or nil if it was not measured

	edits  []time.Duration // of one claim while the others are at rest
	all    time.Duration   // an edit of all, or 0 if it was not measured
	most   usage           // after all of that: its peaks are of this fleet
	faults []fault

	restored *restored // nil if it was not measured
}

// fault is a fault and its consequences.
type fault struct {
	what  string
	took  time.Duration // from the fault until an edit of all claims was applied and all are Ready
	stuck int           // claims that were not within the time of the fleet
	open  int           // open circuit breakers at the end
}

// settledAfter is how long after their last event the first claims are composed again: the least of what the
// function requests (package compose), but for the tenth that Crossplane takes off at most.
const settledAfter = 9 * time.Minute

func (b *bench) measure(ctx context.Context, k kind, n int) (result, error) {
	r := result{kind: k, n: n}
	f, err := b.watch(ctx, k)
	if err != nil {
		return r, err
	}
	defer f.stop()
	if err := resetPeaks(); err != nil {
		return r, err
	}
	before, err := b.use(ctx)
	if err != nil {
		return r, err
	}
	sayf("%d %s are created", n, k.plural)
	start := time.Now()
	if err := b.file(ctx, f, n); err != nil {
		return r, err
	}
	if err := b.allReady(ctx, f, "0"); err != nil {
		return r, err
	}
	r.ready = time.Since(start)
	after, err := b.use(ctx)
	if err != nil {
		return r, err
	}
	r.filing = after.less(before)
	sayf("all are Ready after %.0fs, %.0f requests each, %.0f breakers opened", r.ready.Seconds(), r.filing.requests/float64(n), r.filing.opened)

	if err := b.settle(ctx); err != nil {
		return r, err
	}
	rested := time.Now()
	if r.resting, err = b.over(ctx, b.cli.Rest); err != nil {
		return r, err
	}
	most := k.name == webApps.name && n == slices.Max(b.cli.WebApps)
	if most && b.cli.Steady > 0 {
		if err := pause(ctx, time.Until(rested.Add(settledAfter))); err != nil {
			return r, err
		}
		u, err := b.over(ctx, b.cli.Steady)
		if err != nil {
			return r, err
		}
		r.steady = &u
	}
	if r.edits, err = b.editOne(ctx, f); err != nil {
		return r, err
	}
	sayf("an edit of one: median %v, 99th percentile %v", percentile(r.edits, 50), percentile(r.edits, 99))
	if r.all, err = b.editAll(ctx, f, "all"); err != nil {
		return r, err
	}
	sayf("an edit of all: %.0fs", r.all.Seconds())
	if r.most, err = b.use(ctx); err != nil {
		return r, err
	}
	if b.cli.Faults && most {
		if r.faults, err = b.faults(ctx, f); err != nil {
			return r, err
		}
	}
	if b.cli.Backups > 0 && b.cli.Leaders > 0 && k.name == shops.name && n == slices.Max(b.cli.Shops) {
		if r.restored, err = b.restore(ctx); err != nil {
			return r, err
		}
	}
	return r, b.clear(ctx, f)
}

func sayf(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().UTC().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// own returns the processor time in seconds of Crossplane, the function and the provider
// together.
func own(u usage) float64 {
	return u.seconds["crossplane"] + u.seconds["function"] + u.seconds["provider"]
}

func (b *bench) allReady(ctx context.Context, f *fleet, value string) error {
	err := b.until(ctx, f.kind.within, "all claims to be Ready", func() (bool, error) {
		n, _ := f.pending(value)
		return n == 0, nil
	})
	if err != nil {
		n, example := f.pending(value)
		return fmt.Errorf("%d claims are stuck, %s: %w", n, example, err)
	}
	return nil
}

// settle waits until applies have almost stopped for ten seconds.
func (b *bench) settle(ctx context.Context) error {
	const still = 10 * time.Second
	last, since := -1.0, time.Now()
	return b.until(ctx, 10*time.Minute, "the claims to come to rest", func() (bool, error) {
		m, err := b.cluster.APIServerMetrics(ctx)
		if err != nil {
			return false, err
		}
		if now := m.Sum("apiserver_request_total", map[string]string{"verb": "APPLY"}); now > last+20 || last < 0 {
			last, since = now, time.Now()
		}
		return time.Since(since) >= still, nil
	})
}

// over returns what is used within a time in which claims are at rest.
func (b *bench) over(ctx context.Context, d time.Duration) (usage, error) {
	before, err := b.use(ctx)
	if err != nil {
		return usage{}, err
	}
	if err := pause(ctx, d); err != nil {
		return usage{}, err
	}
	after, err := b.use(ctx)
	u := after.less(before)
	sayf("at rest for %v: %.1f applies a minute, %.1f %% of a core", d, u.applies/d.Minutes(), 100*own(u)/d.Seconds())
	return u, err
}

// pause waits for a time that is measured.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// editOne edits one claim after another, waits until each edit is applied, and returns the times
// that took.
func (b *bench) editOne(ctx context.Context, f *fleet) ([]time.Duration, error) {
	var out []time.Duration
	for i := range b.cli.Edits {
		name, value := f.names[(i*37)%len(f.names)], fmt.Sprintf("one-%d", i)
		start := time.Now()
		if err := b.edit(ctx, f, name, value); err != nil {
			return out, err
		}
		err := b.until(ctx, 5*time.Minute, "the edit of "+name+" to be applied", func() (bool, error) { return !f.since(name, value).IsZero(), nil })
		if err != nil {
			return out, err
		}
		out = append(out, f.since(name, value).Sub(start))
	}
	return out, nil
}

func (b *bench) editAll(ctx context.Context, f *fleet, value string) (time.Duration, error) {
	start := time.Now()
	if err := f.each(func(name string) error { return b.edit(ctx, f, name, value) }); err != nil {
		return 0, err
	}
	err := b.allReady(ctx, f, value)
	return time.Since(start), err
}

// faults causes one fault after another, and checks after each that an edit of all claims is
// applied, so that no claim is stuck.
func (b *bench) faults(ctx context.Context, f *fleet) ([]fault, error) {
	var out []fault
	for _, each := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"Crossplane's pod is deleted", func(ctx context.Context) error { return b.deletePods(ctx, "app=crossplane") }},
		{"the provider's leader is deleted", b.deleteLeader},
		{"the API server is killed and started again", b.restartAPI},
		{"another client changes a Deployment 200 times", func(ctx context.Context) error { return b.storm(ctx, f) }},
	} {
		start, value := time.Now(), fmt.Sprintf("after-%d", len(out))
		if err := each.do(ctx); err != nil {
			return out, fmt.Errorf("%s: %w", each.what, err)
		}
		if _, err := b.editAll(ctx, f, value); err != nil {
			sayf("%s: %v", each.what, err)
		}
		if err := ctx.Err(); err != nil {
			return out, fmt.Errorf("after %s: %w", each.what, err)
		}
		stuck, _ := f.pending(value)
		out = append(out, fault{each.what, time.Since(start), stuck, f.open()})
		sayf("%s: an edit of all is applied after %.0fs, %d claims are stuck, %d breakers are open", each.what, time.Since(start).Seconds(), stuck, f.open())
	}
	return out, nil
}

func (b *bench) deletePods(ctx context.Context, label string) error {
	now := int64(0)
	return b.cluster.Kube.CoreV1().Pods(systemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: label})
}

// deleteLeader deletes the pod of the provider's leader with no grace.
func (b *bench) deleteLeader(ctx context.Context) error {
	holder, err := b.leader(ctx)
	if err != nil {
		return err
	}
	pod, _, _ := strings.Cut(holder, "_")
	now := int64(0)
	return b.cluster.Kube.CoreV1().Pods(systemNamespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

// leader returns the identity of the provider's leader.
func (b *bench) leader(ctx context.Context) (string, error) {
	lease, err := b.cluster.Kube.CoordinationV1().Leases(systemNamespace).Get(ctx, "storeplane-provider", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("cannot find the provider's leader: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.New("the provider has no leader")
	}
	return *lease.Spec.HolderIdentity, nil
}

// restartAPI kills the embedded cluster's API server, and has the cluster start it again.
func (b *bench) restartAPI(ctx context.Context) error {
	api, err := harness.FindAPIServer(os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if err := api.Kill(); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "run", "./test/cluster", "up", "--keep").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot start the API server again: %w\n%s", err, out)
	}
	return nil
}

// storm changes a composed Deployment of one claim 200 times, like another controller that writes into it.
func (b *bench) storm(ctx context.Context, f *fleet) error {
	for i := range 200 {
		label := harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{"storm": strconv.Itoa(i)}}}
		if _, err := b.cluster.Patch(ctx, "Deployment", namespace, f.names[0]+f.kind.web, label); err != nil {
			return err
		}
	}
	return nil
}

// clear deletes the claims and waits until their pods are gone, unless they are to be kept.
func (b *bench) clear(ctx context.Context, f *fleet) error {
	if b.cli.Keep {
		return nil
	}
	err := f.each(func(name string) error { return b.cluster.Delete(ctx, f.kind.name, namespace, name) })
	if err != nil {
		return err
	}
	return b.until(ctx, 45*time.Minute, "what the claims were made of to be gone", func() (bool, error) {
		pods, err := b.cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(pods.Items) == 0, err
	})
}

func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)].Round(time.Millisecond)
}
