//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

func (d *database) comesUp(ctx context.Context, n notes) error {
	start := time.Now()
	if err := d.claim(ctx); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	n.Addf("Ready after %.1fs", time.Since(start).Seconds())
	u := d.world.Get("DatabaseCluster", claimName)
	for field, want := range map[string]string{
		"phase": "Running", "connectionSecret": connection,
		"endpoint": claimName + "-primary." + d.namespace + ".svc:3306", "readOnlyEndpoint": claimName + "-replica." + d.namespace + ".svc:3306",
	} {
		if have := harness.Field(u, "status", field); have != want {
			return fmt.Errorf("status.%s is %q, not %q", field, have, want)
		}
	}
	return cluster.AuditRestricted(ctx, d.namespace)
}

// connects: the ledger's writers connect by the Secret's URI and by its host, and its watch to each
// server by name.
func (d *database) connects(ctx context.Context, n notes) error {
	if _, err := d.account(ctx, n, noTarget, func(context.Context, notes) error { return nil }); err != nil {
		return err
	}
	secret := d.world.Get("Secret", connection)
	for _, key := range []string{"username", "password", "host", "ro-host", "port", "dbname", "uri", "jdbc-uri", "verified-uri", "ca.crt"} {
		if harness.Field(secret, "data", key) == "" {
			return fmt.Errorf("Secret %s has no %s", connection, key)
		}
	}
	return nil
}

// deletePod deletes exactly this pod and no later one of the same name.
func (d *database) deletePod(ctx context.Context, p *unstructured.Unstructured) error {
	err := cluster.Kube.CoreV1().Pods(d.namespace).Delete(ctx, p.GetName(), metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.GetUID())),
	})
	if err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", p.GetName(), err)
	}
	return nil
}

// succeeded waits until another server is the primary than that of a pod.
func (d *database) succeeded(ctx context.Context, old *unstructured.Unstructured) error {
	return d.world.Await(ctx, soon, "another primary than "+old.GetName(), func() (bool, string) {
		p := d.primary()
		return p != nil && p.GetUID() != old.GetUID(), "there is none"
	})
}

// replaced waits for a new object of the same name.
func (d *database) replaced(ctx context.Context, kind string, old *unstructured.Unstructured) error {
	return d.world.Await(ctx, settled, "a new "+kind+" "+old.GetName(), func() (bool, string) {
		u := d.world.Get(kind, old.GetName())
		return u != nil && u.GetUID() != old.GetUID(), "there is none"
	})
}

func (d *database) losesPrimary(ctx context.Context, _ notes) error {
	old := d.primary()
	if err := d.deletePod(ctx, old); err != nil {
		return err
	}
	return d.succeeded(ctx, old)
}

func (d *database) losesReplica(ctx context.Context, _ notes) error {
	old := d.with("replica")[0]
	if err := d.deletePod(ctx, old); err != nil {
		return err
	}
	return d.replaced(ctx, "Pod", old)
}

// marks: a pod that is marked as the primary takes writes at once, since its Service sends clients there: in
// MOCO the mark came too early (https://github.com/cybozu-go/moco/issues/801).
func (d *database) marks(ctx context.Context, n notes) error {
	if err := d.startStore(ctx); err != nil {
		return err
	}
	if _, err := d.sqlAt(ctx, d.primary(), "CREATE TABLE IF NOT EXISTS marked (n INT PRIMARY KEY)"); err != nil {
		return err
	}
	if err := d.losesPrimary(ctx, n); err != nil {
		return err
	}
	p := d.primary()
	if _, err := d.sqlAt(ctx, p, "REPLACE INTO marked VALUES (1)"); err != nil {
		return fmt.Errorf("pod %s is marked as the primary, and takes no writes: %w", p.GetName(), err)
	}
	return nil
}

// evicts: the disruption budget allows one server to go, which hands over.
func (d *database) evicts(ctx context.Context, _ notes) error {
	old := d.primary()
	err := cluster.Kube.CoreV1().Pods(d.namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: old.GetName(), Namespace: d.namespace}})
	if err != nil {
		return fmt.Errorf("cannot evict pod %s: %w", old.GetName(), err)
	}
	return d.succeeded(ctx, old)
}

// unlessNode turns the error of a fault that cannot be caused here into that of a skipped check.
func unlessNode(err error) error {
	if errors.Is(err, harness.ErrNotNode) || errors.Is(err, harness.ErrNotEmbedded) {
		return suite.SkippedError(err.Error())
	}
	return err
}

func (d *database) losesProcesses(ctx context.Context, n notes) error {
	old := d.primary()
	killed, err := harness.Signal(old, syscall.SIGKILL, container)
	if err != nil {
		return unlessNode(err)
	}
	n.Addf("%d processes", killed)
	return d.succeeded(ctx, old)
}

func (d *database) freezes(ctx context.Context, _ notes) error {
	old := d.primary()
	if _, err := harness.Signal(old, syscall.SIGSTOP, container); err != nil {
		return unlessNode(err)
	}
	err := d.succeeded(ctx, old)
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
	}
	// The kubelet may have ended its processes by then. One that stays frozen is not well afterwards.
	_, _ = harness.Signal(old, syscall.SIGCONT, container)
	return err
}

// refusesWithin is how long a primary that wakes up may take to refuse writes, of which no other server acknowledges one: as
// one that sees no majority (docs/mysql.md).
const refusesWithin = 10 * time.Second

// wakes freezes the primary until another server is marked as the primary, and has it continue at that moment: it must not take a
// write then.
func (d *database) wakes(ctx context.Context, n notes) error {
	old, start := d.primary(), time.Now()
	seen := len(d.world.History("Pod", old.GetName()))
	if _, err := harness.Signal(old, syscall.SIGSTOP, container); err != nil {
		return unlessNode(err)
	}
	err := d.world.Await(ctx, soon, "another pod with the role primary", func() (bool, string) {
		return slices.ContainsFunc(d.with("primary"), func(p *unstructured.Unstructured) bool { return p.GetUID() != old.GetUID() }), "there is none"
	})
	// The kubelet may have ended its processes by then.
	_, _ = harness.Signal(old, syscall.SIGCONT, container)
	woken := time.Now()
	if err := errors.Join(err, d.succeeded(ctx, old)); err != nil {
		return err
	}
	err = harness.Await(ctx, refusesWithin, old.GetName()+" to refuse writes", func(ctx context.Context) (bool, error) {
		takes, err := d.sqlAt(ctx, old, "SELECT NOT @@super_read_only")
		// One that hands over refuses clients: error 3032, and while it starts nothing listens.
		shut := err != nil && (strings.Contains(err.Error(), "3032") || strings.Contains(err.Error(), "connection refused"))
		return shut || err == nil && strings.TrimSpace(takes) == "0", errors.Join(err, errors.New("it takes them"))
	})
	if err != nil {
		return err
	}
	n.Addf("refused writes after %.1fs", time.Since(woken).Seconds())
	// It is expelled, and was not away for long enough that its pod is not ready.
	err = eventually(ctx, old.GetName()+" to join again", func() (bool, string) {
		incremental, copied, err := d.joins(ctx, start)
		return incremental+copied > 0, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	followed := false
	for _, v := range d.world.History("Pod", old.GetName())[seen:] {
		leads := v.Object.GetLabels()[roleLabel] == "primary"
		if leads && followed {
			return fmt.Errorf("pod %s was marked as the primary again once another one led", old.GetName())
		}
		followed = followed || !leads
	}
	return nil
}

func (d *database) losesAll(ctx context.Context, _ notes) error {
	old := d.pods()
	all := metav1.ListOptions{LabelSelector: scopeLabel + "=" + setName}
	if err := cluster.Kube.CoreV1().Pods(d.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, all); err != nil {
		return fmt.Errorf("cannot delete all pods: %w", err)
	}
	for _, p := range old {
		if err := d.replaced(ctx, "Pod", p); err != nil {
			return err
		}
	}
	return nil
}

func (d *database) losesVolume(ctx context.Context, _ notes) error {
	pod := d.with("replica")[0]
	volume := d.world.Get("PersistentVolumeClaim", "data-"+pod.GetName())
	// The claim is removed once no pod uses it.
	if err := cluster.Delete(ctx, "PersistentVolumeClaim", d.namespace, volume.GetName()); err != nil {
		return err
	}
	if err := d.deletePod(ctx, pod); err != nil {
		return err
	}
	return d.replaced(ctx, "PersistentVolumeClaim", volume)
}

func (d *database) scales(ctx context.Context, n notes) error {
	first := setName + "-0"
	if p := d.primary(); p.GetName() == first {
		// It is not removed, and would not have to hand over.
		if err := d.evicts(ctx, n); err != nil {
			return err
		}
		if err := d.whole(ctx, baseSize); err != nil {
			return err
		}
	}
	if p := d.primary(); p.GetName() == first {
		return fmt.Errorf("pod %s is the primary, and would not hand over before the others are removed", first)
	}
	for _, step := range []struct {
		size   int
		within time.Duration
	}{{1, whenPlanned}, {3, whenAdded}, {5, whenAdded}, {3, whenPlanned}} {
		start := time.Now()
		from, err := d.ledger.Mark(ctx)
		if err != nil {
			return err
		}
		if err := d.change(ctx, harness.Patch{"size": step.size}); err != nil {
			return err
		}
		if err := d.whole(ctx, step.size); err != nil {
			return err
		}
		took := time.Since(start)
		a, err := d.ledger.Account(ctx, from)
		if err != nil {
			return err
		}
		n.Addf("to %d in %.0fs, gap %.2fs", step.size, took.Seconds(), a.Gap.Seconds())
		if err := a.Within(step.within); err != nil {
			return fmt.Errorf("to %d servers: %w", step.size, err)
		}
	}
	return nil
}

// uids returns the UIDs of the pods, by name.
func (d *database) uids() map[string]string {
	out := map[string]string{}
	for _, p := range d.pods() {
		out[p.GetName()] = string(p.GetUID())
	}
	return out
}

// sets: parameters that need no start hold on all servers while they run. One that is removed gets the value
// that it has without the claim's, as does one that MySQL refuses, which is reported.
func (d *database) sets(ctx context.Context, n notes) error {
	// Its image has a client of MySQL.
	if err := d.startStore(ctx); err != nil {
		return err
	}
	before := d.uids()
	applied := func(status metav1.ConditionStatus, text string) func() (bool, string) {
		return func() (bool, string) {
			c := d.status().Condition("ParametersApplied")
			return c.Status == status && strings.Contains(c.Message, text), fmt.Sprintf("it is %s: %s", c.Status, c.Message)
		}
	}
	everywhere := func(name, want string) error {
		return eventually(ctx, name+" to be "+want, func() (bool, string) {
			for _, p := range d.pods() {
				got, err := d.sqlAt(ctx, p, "SELECT @@GLOBAL."+name)
				if err != nil {
					return false, err.Error()
				}
				if strings.TrimSpace(got) != want {
					return false, p.GetName() + " has " + got
				}
			}
			return true, ""
		})
	}
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"parameters": harness.Patch{"max_connections": "200", "sort_buffer_size": "1M"}}); err != nil {
		return err
	}
	if err := errors.Join(everywhere("max_connections", "200"), everywhere("sort_buffer_size", "1048576")); err != nil {
		return err
	}
	n.Addf("set after %.1fs", time.Since(start).Seconds())
	if err := d.change(ctx, harness.Patch{"parameters": harness.Patch{"max_connections": nil, "sort_buffer_size": "much"}}); err != nil {
		return err
	}
	if err := d.world.Await(ctx, soon, "the refused parameter to be reported", applied(metav1.ConditionFalse, "sort_buffer_size")); err != nil {
		return err
	}
	if err := errors.Join(everywhere("max_connections", "151"), everywhere("sort_buffer_size", "262144")); err != nil {
		return err
	}
	if err := d.change(ctx, harness.Patch{"parameters": nil}); err != nil {
		return err
	}
	if err := d.world.Await(ctx, soon, "all parameters to be applied", applied(metav1.ConditionTrue, "")); err != nil {
		return err
	}
	if err := d.whole(ctx, baseSize); err != nil {
		return err
	}
	if diff := cmp.Diff(before, d.uids()); diff != "" {
		return fmt.Errorf("pods were replaced:\n%s", diff)
	}
	return nil
}

// hasUsers: users get databases and Secrets of their own.
func (d *database) hasUsers(ctx context.Context, _ notes) error {
	err := d.change(ctx, harness.Patch{
		"users": []any{harness.Patch{"name": "reports"}}, "databases": []any{harness.Patch{"name": "reports", "owner": "reports"}},
	})
	if err != nil {
		return err
	}
	secret := claimName + "-user-reports"
	err = d.world.Await(ctx, soon, "Secret "+secret, func() (bool, string) {
		return harness.Field(d.world.Get("Secret", secret), "data", "password") != "", "it has no password"
	})
	if err != nil {
		return err
	}
	// Its image has a client of MySQL.
	if err := d.startStore(ctx); err != nil {
		return err
	}
	// The primary has the user a moment after the Secret.
	err = eventually(ctx, "user reports to log in", func() (bool, string) {
		_, err := d.sqlBy(ctx, secret, "SELECT 1")
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	if out, err := d.sqlBy(ctx, secret, "SELECT COUNT(*) FROM app.ledger"); err == nil || !strings.Contains(err.Error(), "denied") {
		return fmt.Errorf("user reports may read the table of another one: %s: %w", out, err)
	}
	return d.whole(ctx, baseSize)
}

func (d *database) hibernates(ctx context.Context, n notes) error {
	volumes, start := d.volumes(), time.Now()
	if err := d.sleeps(ctx); err != nil {
		return err
	}
	n.Addf("asleep after %.0fs", time.Since(start).Seconds())
	if diff := cmp.Diff(volumes, d.volumes()); diff != "" {
		return fmt.Errorf("the volumes are not those of before:\n%s", diff)
	}
	start = time.Now()
	if err := d.change(ctx, harness.Patch{"hibernated": nil}); err != nil {
		return err
	}
	err := d.whole(ctx, baseSize)
	n.Addf("awake after %.0fs", time.Since(start).Seconds())
	return err
}
