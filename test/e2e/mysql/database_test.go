//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// Names of the claim and of its objects.
const (
	claimName  = "ledger"
	setName    = claimName + "-mysql"
	connection = claimName + "-connection"
	container  = "mysql"

	scopeLabel = "storeplane.example.com/group"
	roleLabel  = "storeplane.example.com/role"
)

// Timeouts: of what takes one or two reconciles or an election, and of a change of servers, one after
// the other.
const (
	soon    = time.Minute
	settled = 6 * time.Minute
)

// baseSize is the number of servers with which each check begins and ends, and mostServers that of the
// largest check, plus one.
const (
	baseSize    = 3
	mostServers = 6
)

// database is a DatabaseCluster under test.
type database struct {
	namespace, manifest string

	// base is the spec with which each check begins and ends.
	base harness.Patch

	world  *harness.World
	ledger *harness.Ledger

	// broken is true if the database did not become healthy again: then a new one is claimed, unless it is lasting,
	// since other checks need what a new one would not have.
	broken, lasting bool

	// rejoined is how many servers have rejoined the group in a soak, and copied how many of them by a copy of
	// another one.
	rejoined, copied int
}

// claim creates the namespace, starts a watch of it, and applies the claim, unless that was done.
func (d *database) claim(ctx context.Context) error {
	if d.world != nil {
		return nil
	}
	if err := cluster.CreateNamespace(ctx, d.namespace); err != nil {
		return err
	}
	world, err := cluster.Watch(ctx, d.namespace)
	if err != nil {
		return err
	}
	u, err := manifests.Read(d.manifest, map[string]string{"NAMESPACE": d.namespace})
	if err != nil {
		return err
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	d.world = world
	return nil
}

// ready restores the state in which each check begins and ends, and waits for it. If an earlier check has left
// the database broken, a new one is claimed.
func (d *database) ready(ctx context.Context) error {
	if d.broken && !d.lasting {
		d.world.Stop()
		*d = database{namespace: d.namespace, manifest: d.manifest, base: d.base}
		if err := cluster.Sweep(ctx, d.namespace); err != nil {
			return err
		}
	}
	if err := d.claim(ctx); err != nil {
		return err
	}
	if err := d.change(ctx, d.base); err != nil {
		return err
	}
	err := d.whole(ctx, baseSize)
	d.broken = err != nil && ctx.Err() == nil
	return err
}

// change patches the spec of the claim and, unless it is a dry run, waits until the watch contains the change.
func (d *database) change(ctx context.Context, spec harness.Patch, dryRun ...string) error {
	u, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, claimName, harness.Patch{"spec": spec}, dryRun...)
	if err != nil || len(dryRun) > 0 {
		return err
	}
	return d.world.AwaitSeen(ctx, u)
}

func (d *database) status() harness.Claim { return d.world.Claim("DatabaseCluster", claimName) }

// pods returns the pods of the servers, by name.
func (d *database) pods() []*unstructured.Unstructured {
	return slices.DeleteFunc(d.world.List("Pod"), func(p *unstructured.Unstructured) bool { return p.GetLabels()[scopeLabel] != setName })
}

// with returns the pods of a role.
func (d *database) with(role string) []*unstructured.Unstructured {
	return slices.DeleteFunc(d.pods(), func(p *unstructured.Unstructured) bool {
		return p.GetLabels()[roleLabel] != role || p.GetDeletionTimestamp() != nil
	})
}

// roles returns the roles of the servers' pods, by name.
func (d *database) roles() map[string]string {
	out := map[string]string{}
	for _, p := range d.pods() {
		out[p.GetName()] = p.GetLabels()[roleLabel]
	}
	return out
}

// primary returns the pod with the role primary, or nil if there is none or more than one.
func (d *database) primary() *unstructured.Unstructured {
	if all := d.with("primary"); len(all) == 1 {
		return all[0]
	}
	return nil
}

// whole waits until there are so many servers, all of them well and up to date, and the claim says so.
func (d *database) whole(ctx context.Context, size int) error {
	return d.world.Await(ctx, settled, fmt.Sprintf("%d servers to be well", size), func() (bool, string) {
		missing := d.missing(size)
		return missing == "", missing + "; " + d.status().String()
	})
}

// missing returns what is not yet as whole requires, or "".
func (d *database) missing(size int) string {
	set := d.world.Get("StatefulSet", setName)
	if set == nil || harness.Number(set, "status", "observedGeneration") != set.GetGeneration() {
		return "StatefulSet " + setName + " is not up to date"
	}
	pods := d.pods()
	if len(pods) != size {
		return fmt.Sprintf("there are %d pods", len(pods))
	}
	for _, p := range pods {
		if p.GetDeletionTimestamp() != nil || !harness.ClaimOf(p).Is("Ready") {
			return "pod " + p.GetName() + " is not ready"
		}
		if p.GetLabels()["controller-revision-hash"] != harness.Field(set, "status", "updateRevision") {
			return "pod " + p.GetName() + " is not of the newest revision"
		}
	}
	primary, claim := d.primary(), d.status()
	switch {
	case !claim.Ready():
		return "the claim is not Ready at its generation"
	case primary == nil:
		return "there is no pod with the role primary"
	case len(d.with("replica")) != size-1:
		return fmt.Sprintf("there are %d replicas", len(d.with("replica")))
	case harness.Field(d.world.Get("DatabaseCluster", claimName), "status", "primary") != primary.GetName():
		return "the claim names another primary than " + primary.GetName()
	}
	for _, condition := range []string{"ReplicationHealthy", "StorageHealthy", "ParametersApplied", "DatabasesReady"} {
		if !claim.Is(condition) {
			return "the claim is not " + condition
		}
	}
	return ""
}

// breaking is a check after which, if it fails, there may be no claim, or one without a primary.
func (d *database) breaking(do check) check {
	return func(ctx context.Context, n notes) error {
		err := do(ctx, n)
		if _, skipped := errors.AsType[suite.SkippedError](err); err != nil && !skipped {
			d.broken = true
		}
		return err
	}
}

// event is what happens to the database while a ledger is kept.
type event func(ctx context.Context, n notes) error

// under returns a check that causes an event while a ledger is kept. Afterwards every acknowledged row
// has to be there, and the longest time without an acknowledgement is at most the target, if there is one.
func (d *database) under(target time.Duration, do event) check {
	return func(ctx context.Context, n notes) error {
		_, err := d.account(ctx, n, target, do)
		return err
	}
}

// undisturbed is under for events in which not even a connection may break.
func (d *database) undisturbed(do event) check {
	return func(ctx context.Context, n notes) error {
		// A writer counts its connection once it is there again, and account waits for each writer.
		a, err := d.account(ctx, n, whenPlanned, do)
		if broken := a.To.Connections - a.From.Connections; broken > 0 {
			err = errors.Join(err, fmt.Errorf("%d connections broke", broken))
		}
		return err
	}
}

// repeated is under, three times in a full run.
func (d *database) repeated(target time.Duration, do event) check {
	return func(ctx context.Context, n notes) error {
		times := 1
		if tests.Full() {
			times = 3
		}
		for range times {
			if _, err := d.account(ctx, n, target, do); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d *database) account(ctx context.Context, n notes, target time.Duration, do event) (harness.Account, error) {
	if err := d.ready(ctx); err != nil {
		return harness.Account{}, err
	}
	if err := d.keepLedger(ctx); err != nil {
		return harness.Account{}, err
	}
	from, err := d.ledger.Mark(ctx)
	if err != nil {
		return harness.Account{}, err
	}
	start := time.Now()
	err = do(ctx, n)
	if _, skipped := errors.AsType[suite.SkippedError](err); skipped {
		return harness.Account{}, err
	}
	// After a failure it is reported, too, what else is wrong.
	a, rerr := d.recover(ctx, from)
	if !tests.Full() {
		// A quick run checks correctness, on any machine.
		target *= 4
	}
	n.Addf("gap %.2fs of %.0fs from %.1fs on, %s, well after %.0fs", a.Gap.Seconds(), target.Seconds(), a.Began.Sub(start).Seconds(), a, time.Since(start).Seconds())
	if err = errors.Join(err, rerr); err != nil {
		return a, err
	}
	return a, a.Within(target)
}

// recover waits until the state is restored and writes are acknowledged, and returns what happened since from.
func (d *database) recover(ctx context.Context, from harness.Mark) (harness.Account, error) {
	if err := d.ready(ctx); err != nil {
		return harness.Account{}, err
	}
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return harness.Account{}, err
	}
	if err := d.ledger.Flows(ctx, soon, now); err != nil {
		return harness.Account{}, err
	}
	return d.ledger.Account(ctx, from)
}

// keepLedger starts a ledger unless there is one, and waits until it has rows acknowledged.
func (d *database) keepLedger(ctx context.Context) error {
	if d.ledger == nil {
		l, err := harness.StartLedger(ctx, cluster, d.world, harness.Database{
			Engine: "mysql", Secret: connection, Host: setName + "-%d." + setName + "." + d.namespace + ".svc", Servers: mostServers,
		})
		if err != nil {
			return err
		}
		d.ledger = l
	}
	now, err := d.ledger.Mark(ctx)
	if err != nil {
		return err
	}
	return d.ledger.Flows(ctx, soon, now)
}
