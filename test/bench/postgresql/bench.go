package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/storeplane/storeplane/test/bench/sides"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// The names of the measured claim and its StatefulSet.
const (
	claimName = "measured"
	setName   = claimName + "-postgresql"
)

// target is the smallest allowed ratio of a claim's speed to a plain server's.
const target = 0.95

// started is the timeout for a claim to become ready after a change.
const started = 5 * time.Minute

// bench is what the comparisons share.
type bench struct {
	*cli

	cluster *harness.Cluster
	world   *harness.World
	client  *harness.Client

	claim           server
	plain, unsummed server
}

// start creates a claim and two plain servers, with and without checksums, and fills all three.
func start(ctx context.Context, c *harness.Cluster, args *cli) (*bench, error) {
	b := &bench{cli: args, cluster: c}
	if err := c.CreateNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	var err error
	if b.world, err = c.Watch(ctx, namespace); err != nil {
		return nil, err
	}
	u, err := manifests.Read("bench/claim.yaml", map[string]string{"NAMESPACE": namespace, "SIZE": "1"})
	if err != nil {
		return nil, err
	}
	if _, err := c.Create(ctx, u); err != nil {
		return nil, err
	}
	if err := b.world.AwaitReady(ctx, started, "DatabaseCluster", claimName); err != nil {
		return nil, err
	}
	if b.client, err = harness.StartClient(ctx, c, b.world); err != nil {
		return nil, err
	}
	password, err := b.password()
	if err != nil {
		return nil, err
	}
	b.claim = server{name: "claim", host: claimName + "-primary." + namespace + ".svc", user: "app", database: "app", password: password, sslmode: "disable"}
	settings, err := b.sql(ctx, settingsQuery)
	if err != nil {
		return nil, err
	}
	if password, err = preparePlain(ctx, c, plainConf(settings)); err != nil {
		return nil, err
	}
	if b.plain, err = startPlain(ctx, c, b.world, "plain", password, "--data-checksums"); err != nil {
		return nil, err
	}
	if b.unsummed, err = startPlain(ctx, c, b.world, "unsummed", password, ""); err != nil {
		return nil, err
	}
	for _, s := range []server{b.claim, b.plain, b.unsummed} {
		if _, err := pgbench(ctx, b.client, s, started, "--initialize", "--quiet", "--scale="+strconv.Itoa(b.Scale)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// password returns the password of the claim's user.
func (b *bench) password() (string, error) {
	raw, err := base64.StdEncoding.DecodeString(harness.Field(b.world.Get("Secret", claimName+"-connection"), "data", "password"))
	if err != nil {
		return "", fmt.Errorf("cannot read the password of Secret %s-connection: %w", claimName, err)
	}
	if len(raw) == 0 {
		return "", fmt.Errorf("cannot read the password of Secret %s-connection: it has none", claimName)
	}
	return string(raw), nil
}

// sql runs a query in the pod of the claim's primary.
func (b *bench) sql(ctx context.Context, query string) (string, error) {
	primary := harness.Field(b.world.Get("DatabaseCluster", claimName), "status", "primary")
	return b.cluster.Exec(ctx, namespace, primary, "postgresql", nil,
		"psql", "--no-psqlrc", "--tuples-only", "--no-align", "--username=postgres", "--dbname=app", "--command="+query)
}

// side returns the measurement of a server under a workload.
func (b *bench) side(s server, w workload) sides.Side {
	return sides.Side{Name: s.name, Measure: func(ctx context.Context) ([]float64, error) {
		args := []string{"--client=" + strconv.Itoa(b.Clients), "--jobs=1", "--time=" + strconv.Itoa(b.Seconds)}
		out, err := pgbench(ctx, b.client, s, time.Duration(b.Seconds)*time.Second+time.Minute, append(args, w.args...)...)
		if err != nil {
			return nil, err
		}
		tps, err := tpsOf(out)
		return []float64{tps}, err
	}}
}

// all runs all comparisons and prints a line for each. It returns an error if a target is missed.
func (b *bench) all(ctx context.Context) error {
	fmt.Printf("pgbench, scale %d, %d clients, the median of %d times %d s each in turns\n", b.Scale, b.Clients, b.Rounds, b.Seconds)
	var missed []error
	for _, w := range []workload{selectOnly, tpcb} {
		r, err := b.compare(ctx, "claim of 1", w, b.side(b.plain, w), b.side(b.claim, w))
		if err != nil {
			return err
		}
		if r.Ratio(0) < target {
			missed = append(missed, fmt.Errorf("%s through a claim is %.3f of a plain server's, the target is %.2f", w.name, r.Ratio(0), target))
		}
	}
	for _, w := range []workload{selectOnly, tpcb, reconnects} {
		if _, err := b.compare(ctx, "TLS", w, b.side(b.claim.with("without", "disable"), w), b.side(b.claim.with("with", "require"), w)); err != nil {
			return err
		}
	}
	for _, w := range []workload{selectOnly, tpcb} {
		if _, err := b.compare(ctx, "checksums", w, b.side(b.unsummed, w), b.side(b.plain, w)); err != nil {
			return err
		}
	}
	for _, size := range []int{2, 3} {
		if err := b.synchronous(ctx, size); err != nil {
			return err
		}
	}
	return errors.Join(missed...)
}

func (b *bench) compare(ctx context.Context, what string, w workload, base, other sides.Side) (sides.Result, error) {
	r, err := sides.Compare(ctx, b.Rounds, base, other)
	if err != nil {
		return r, fmt.Errorf("cannot measure %s: %w", what, err)
	}
	fmt.Printf("%-22s %-31s %-9s %9.0f tps   %-9s %9.0f tps   ratio %.3f\n", what, w.name, base.Name, r.Base[0], other.Name, r.Other[0], r.Ratio(0))
	return r, nil
}

// synchronous compares a claim of the given size with and without synchronous replication, which
// it turns on and off on the same servers.
func (b *bench) synchronous(ctx context.Context, size int) error {
	if err := b.change(ctx, harness.Patch{"size": size}); err != nil {
		return err
	}
	turned := func(name string, on bool) sides.Side {
		s := b.side(b.claim.with(name, "disable"), tpcb)
		measure := s.Measure
		s.Measure = func(ctx context.Context) ([]float64, error) {
			if err := b.turn(ctx, on); err != nil {
				return nil, err
			}
			return measure(ctx)
		}
		return s
	}
	_, err := b.compare(ctx, fmt.Sprintf("synchronous, size %d", size), tpcb, turned("without", false), turned("with", true))
	return err
}

// change patches the claim's spec and waits until the claim is ready with it.
func (b *bench) change(ctx context.Context, spec harness.Patch) error {
	u, err := b.cluster.Patch(ctx, "DatabaseCluster", namespace, claimName, harness.Patch{"spec": spec})
	if err != nil {
		return err
	}
	if err := b.world.AwaitSeen(ctx, u); err != nil {
		return err
	}
	return b.world.AwaitReady(ctx, started, "DatabaseCluster", claimName)
}
