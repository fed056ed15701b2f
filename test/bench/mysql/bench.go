package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/bench/sides"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// The name of the measured claim, of the pod that measures, and of its container.
const (
	claimName  = "measured"
	clientName = "client"
)

// target is the smallest allowed ratio of a claim's commits per second to those of plain servers.
const target = 0.95

// started is the timeout for a claim, or a plain server, to become ready.
const started = 5 * time.Minute

// Figures of a measurement.
const (
	commits = iota
	p99
)

// bench is what the comparisons share.
type bench struct {
	*cli

	cluster *harness.Cluster
	world   *harness.World
	plain   plain
}

// server is a measured server and the URI of a connection to it.
type server struct{ name, uri string }

// start creates the pod that measures, and a claim of one server.
func (b *bench) start(ctx context.Context) error {
	if err := b.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	var err error
	if b.world, err = b.cluster.Watch(ctx, namespace); err != nil {
		return err
	}
	if err := b.apply(ctx, nil, "benchmysql/client.yaml", "benchmysql/claim.yaml"); err != nil {
		return err
	}
	if err := b.world.AwaitReady(ctx, started, "DatabaseCluster", claimName); err != nil {
		return err
	}
	b.plain, err = b.preparePlain(ctx)
	return err
}

// apply creates the objects of manifests.
func (b *bench) apply(ctx context.Context, values map[string]string, names ...string) error {
	all := map[string]string{"NAMESPACE": namespace, "REGISTRY": b.cluster.Registry}
	maps.Copy(all, values)
	for _, name := range names {
		u, err := manifests.Read(name, all)
		if err != nil {
			return err
		}
		if _, err := b.cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// claim returns the claim's primary.
func (b *bench) claim() (server, error) {
	uri, err := base64.StdEncoding.DecodeString(harness.Field(b.world.Get("Secret", claimName+"-connection"), "data", "uri"))
	if err != nil || len(uri) == 0 {
		return server{}, errors.Join(fmt.Errorf("cannot read the connection of claim %s", claimName), err)
	}
	return server{"claim", string(uri)}, nil
}

// data runs the program of the pod that measures. The connection is passed on standard input, so that no
// password is in an argument.
func (b *bench) data(ctx context.Context, s server, args ...string) (string, error) {
	out, err := b.cluster.Exec(ctx, namespace, clientName, clientName, strings.NewReader(s.uri), append([]string{"data"}, args...)...)
	if err != nil {
		return "", fmt.Errorf("cannot run data %s against %s: %w", args[0], s.name, err)
	}
	return out, nil
}

// side returns the measurement of a server.
func (b *bench) side(s server) sides.Side {
	return sides.Side{Name: s.name, Measure: func(ctx context.Context) ([]float64, error) {
		ctx, cancel := context.WithTimeout(ctx, b.For+time.Minute)
		defer cancel()
		out, err := b.data(ctx, s, "bench", "--clients="+strconv.Itoa(b.Clients), "--for="+b.For.String())
		if err != nil {
			return nil, err
		}
		return figuresOf(out)
	}}
}

// figuresOf reads the commits per second and the 99th percentile.
func figuresOf(out string) ([]float64, error) {
	var figures []float64
	for field := range strings.FieldsSeq(out) {
		f, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read a measurement: %w", err)
		}
		figures = append(figures, f)
	}
	if len(figures) != p99+1 {
		return nil, fmt.Errorf("cannot read a measurement: it is %q", out)
	}
	return figures, nil
}

// all runs all comparisons and prints a line for each. It returns an error if a target is missed.
func (b *bench) all(ctx context.Context) error {
	fmt.Printf("an update and an insert per transaction, %d clients, the median of %d times %s each in turns\n", b.Clients, b.Rounds, b.For)
	one, err := b.plain.single(ctx)
	if err != nil {
		return err
	}
	r, err := b.compare(ctx, "claim of 1", one)
	if err != nil {
		return err
	}
	missed := misses("claim of 1", r)
	if err := b.plain.stop(ctx, single); err != nil {
		return err
	}
	if err := b.grow(ctx); err != nil {
		return err
	}
	three, err := b.plain.group(ctx)
	if err != nil {
		return err
	}
	if r, err = b.compare(ctx, "claim of 3", three); err != nil {
		return err
	}
	return errors.Join(missed, misses("claim of 3", r))
}

// misses returns an error if a claim makes fewer commits than the target.
func misses(what string, r sides.Result) error {
	if r.Ratio(commits) < target {
		return fmt.Errorf("commits of a %s are %.3f of those of plain servers, the target is %.2f", what, r.Ratio(commits), target)
	}
	return nil
}

// compare measures the claim's primary and a plain server, and prints a line.
func (b *bench) compare(ctx context.Context, what string, base server) (sides.Result, error) {
	claim, err := b.claim()
	if err != nil {
		return sides.Result{}, err
	}
	r, err := sides.Compare(ctx, b.Rounds, b.side(base), b.side(claim))
	if err != nil {
		return r, fmt.Errorf("cannot measure %s: %w", what, err)
	}
	fmt.Printf("%-11s %-6s %7.0f commits/s p99 %6.1f ms   %-6s %7.0f commits/s p99 %6.1f ms   ratios %.3f and %.3f\n", what,
		base.name, r.Base[commits], r.Base[p99], claim.name, r.Other[commits], r.Other[p99], r.Ratio(commits), r.Ratio(p99))
	return r, nil
}

// grow scales the claim to three servers.
func (b *bench) grow(ctx context.Context) error {
	u, err := b.cluster.Patch(ctx, "DatabaseCluster", namespace, claimName, harness.Patch{"spec": harness.Patch{"size": groupSize}})
	if err != nil {
		return err
	}
	if err := b.world.AwaitSeen(ctx, u); err != nil {
		return err
	}
	return b.world.AwaitReady(ctx, started, "DatabaseCluster", claimName)
}
