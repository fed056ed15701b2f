package main

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The targets: writes for each workload, MiB of memory of the provider, and the time from an edit
// to the first workload.
const (
	mostWrites  = 2.0
	mostMemory  = 256.0
	mostLatency = time.Second
)

// printFigure prints a figure, marked as MISSED unless ok.
func printFigure(what, figure string, ok bool) {
	verdict := ""
	if !ok {
		verdict = "  MISSED"
	}
	fmt.Printf("  %-46s %s%s\n", what, figure, verdict)
}

// one measures one change of an AppConfig with many workloads.
func (b *bench) one(ctx context.Context) error {
	const ns, app = "one", "big"
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}}
	if err := b.create(ctx, objects); err != nil {
		return err
	}
	objects = nil
	for i := range b.cli.Workloads {
		objects = append(objects, deployment(ns, fmt.Sprintf("w%d", i), app))
	}
	if err := b.create(ctx, append(objects, appConfig(ns, app, "0"))); err != nil {
		return err
	}
	if err := b.until(ctx, "the first rollout has ended", func() bool { return b.ready(ctx) == 1 }); err != nil {
		return err
	}
	// The counts start once the requests of the first rollout are over, and late enough that the
	// next change is rolled out at once.
	if err := pause(ctx, spacing); err != nil {
		return err
	}
	b.proxy.reset()
	began, bundle, err := b.edit(ctx, ns, app, "1")
	if err != nil {
		return err
	}
	var first, last time.Time
	if err := b.until(ctx, "all workloads run the change", func() bool {
		n := 0
		first, last = time.Time{}, time.Time{}
		for i := range b.cli.Workloads {
			at := b.when(ns, fmt.Sprintf("w%d", i), bundle)
			if at.IsZero() {
				continue
			}
			n++
			if first.IsZero() || at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		return n == b.cli.Workloads && b.ready(ctx) == 1
	}); err != nil {
		return err
	}
	c := b.proxy.reset()
	n := float64(b.cli.Workloads)
	fmt.Printf("%d workloads of one AppConfig, one change:\n", b.cli.Workloads)
	printFigure("until the first workload is changed", first.Sub(began).Round(time.Millisecond).String(), first.Sub(began) <= mostLatency)
	printFigure("until the last one is, 20 at a time", last.Sub(began).Round(time.Millisecond).String(), true)
	printFigure("writes to a workload", fmt.Sprintf("%.2f", float64(c.of("patch deployments", "put deployments"))/n), float64(c.of("patch deployments", "put deployments"))/n <= mostWrites)
	printFigure("writes of all kinds, for each workload", fmt.Sprintf("%.2f", float64(c.writes()-c.of("post events", "patch events"))/n), float64(c.writes()-c.of("post events", "patch events"))/n <= mostWrites)
	printFigure("lists over all namespaces", strconv.Itoa(c.of("list everywhere")), c.of("list everywhere") == 0)
	printFigure("requests", c.String(), true)
	return nil
}

// spacing is the time between two changes after which the second one is rolled out at once.
const spacing = 31 * time.Second

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("cannot rest: %w", ctx.Err())
	case <-time.After(d):
		return nil
	}
}

// storm measures twenty edits in ten seconds, and the same edits with Reloader's method.
func (b *bench) storm(ctx context.Context) error {
	const ns, app, edits = "one", "big", 20
	if err := pause(ctx, spacing); err != nil {
		return err
	}
	b.proxy.reset()
	for i := range edits {
		if _, _, err := b.edit(ctx, ns, app, fmt.Sprintf("storm %d", i)); err != nil {
			return err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	if err := b.until(ctx, "the last edit runs", func() bool { return b.ready(ctx) == 1 }); err != nil {
		return err
	}
	c := b.proxy.reset()
	n := float64(b.cli.Workloads)
	fmt.Printf("%d edits in ten seconds, %d workloads:\n", edits, b.cli.Workloads)
	printFigure("writes to a workload", fmt.Sprintf("%.2f", float64(c.of("patch deployments", "put deployments"))/n), float64(c.of("patch deployments"))/n <= mostWrites)
	printFigure("requests", c.String(), true)
	r, err := b.reload(ctx, ns, edits)
	if err != nil {
		return err
	}
	printFigure("Reloader's method: writes to a workload", fmt.Sprintf("%.2f", float64(r.of("put deployments"))/n), true)
	printFigure("Reloader's method: requests", r.String(), true)
	return nil
}

// fleet measures many AppConfigs: the provider's memory, and the latency of edits.
func (b *bench) fleet(ctx context.Context) error {
	var namespaces, objects []client.Object
	for i := range b.cli.Namespaces {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleetNamespace(i)}})
	}
	for i := range b.cli.AppConfigs {
		ns, app := b.member(i)
		for n := range b.cli.Each {
			objects = append(objects, deployment(ns, fmt.Sprintf("%s-%d", app, n), app))
		}
		objects = append(objects, appConfig(ns, app, "0"))
	}
	if err := b.create(ctx, namespaces); err != nil {
		return err
	}
	began := time.Now()
	if err := b.create(ctx, objects); err != nil {
		return err
	}
	if err := b.until(ctx, "the fleet is ready", func() bool { return b.ready(ctx) == b.cli.AppConfigs+1 }); err != nil {
		return err
	}
	fmt.Printf("%d AppConfigs, %d workloads:\n", b.cli.AppConfigs, b.cli.AppConfigs*b.cli.Each)
	printFigure("made and all ready", time.Since(began).Round(time.Second).String(), true)
	if err := pause(ctx, spacing); err != nil {
		return err
	}
	if err := b.latency(ctx); err != nil {
		return err
	}
	return b.memory()
}

func fleetNamespace(i int) string { return fmt.Sprintf("fleet-%d", i) }

func (b *bench) member(i int) (namespace, app string) {
	return fleetNamespace(i % b.cli.Namespaces), fmt.Sprintf("app-%d", i)
}

// latency measures the time from an edit of an AppConfig to the first workload that is changed.
// No AppConfig is edited twice.
func (b *bench) latency(ctx context.Context) error {
	b.proxy.reset()
	var all []time.Duration
	for n, i := range rand.Perm(b.cli.AppConfigs)[:min(b.cli.Edits, b.cli.AppConfigs)] { //nolint:gosec // The order need not be unpredictable.
		ns, app := b.member(i)
		began, bundle, err := b.edit(ctx, ns, app, fmt.Sprintf("edit %d", n))
		if err != nil {
			return err
		}
		var first time.Time
		if err := b.until(ctx, "an edit reaches a workload", func() bool {
			for k := range b.cli.Each {
				if at := b.when(ns, fmt.Sprintf("%s-%d", app, k), bundle); !at.IsZero() && (first.IsZero() || at.Before(first)) {
					first = at
				}
			}
			return !first.IsZero()
		}); err != nil {
			return err
		}
		all = append(all, first.Sub(began))
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	slices.Sort(all)
	c := b.proxy.reset()
	p99 := all[(len(all)*99-1)/100]
	printFigure(fmt.Sprintf("edit to first workload, %d edits: p50", len(all)), all[len(all)/2].Round(time.Millisecond).String(), true)
	printFigure("  p99", p99.Round(time.Millisecond).String(), p99 <= mostLatency)
	printFigure("  most", all[len(all)-1].Round(time.Millisecond).String(), true)
	printFigure("lists over all namespaces", strconv.Itoa(c.of("list everywhere")), c.of("list everywhere") == 0)
	return nil
}

// memory prints the provider's resident memory, now and at most, as the kernel reports it.
func (b *bench) memory() error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", b.provider.Process.Pid))
	if err != nil {
		return fmt.Errorf("cannot read the provider's memory: %w", err)
	}
	defer func() { _ = f.Close() }()
	for s := bufio.NewScanner(f); s.Scan(); {
		what, figure, _ := strings.Cut(s.Text(), ":")
		if what != "VmRSS" && what != "VmHWM" {
			continue
		}
		kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(figure, "kB")), 64)
		if err != nil {
			return fmt.Errorf("cannot read the provider's memory: %w", err)
		}
		label := map[string]string{"VmRSS": "memory of the provider, now", "VmHWM": "memory of the provider, at most"}[what]
		printFigure(label, fmt.Sprintf("%.0f MiB", kib/1024), kib/1024 <= mostMemory)
	}
	return nil
}

// restart measures a restart of the provider after an edit that it has missed: only that edit's
// workloads may be written, and the time until the first one is changed is printed.
func (b *bench) restart(ctx context.Context) error {
	b.halt()
	b.proxy.reset()
	ns, app := b.member(0)
	_, bundle, err := b.edit(ctx, ns, app, "while it was down")
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.run(); err != nil {
		return err
	}
	var at time.Time
	if err := b.until(ctx, "the missed edit runs", func() bool {
		at = b.when(ns, app+"-0", bundle)
		return !at.IsZero() && b.ready(ctx) == b.cli.AppConfigs+1
	}); err != nil {
		return err
	}
	if err := pause(ctx, spacing); err != nil {
		return err
	}
	c := b.proxy.reset()
	fmt.Println("restart of the provider, with one edit that it has missed:")
	printFigure("until the edit's first workload is changed", at.Sub(began).Round(time.Millisecond).String(), true)
	printFigure("writes to workloads", fmt.Sprintf("%d, of %d that should change", c.of("patch deployments"), b.cli.Each), c.of("patch deployments") == b.cli.Each)
	printFigure("requests", c.String(), true)
	return b.memory()
}
