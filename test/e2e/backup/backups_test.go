//go:build e2e

package backup

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// change changes the parameters of a Backup before it is created.
type change func(*backupv1.BackupParameters)

// parameters returns the parameters of a Backup that has no schedule and is verified only on
// request.
func (g *ground) parameters(e engine, s backupv1.StoreType, changes ...change) backupv1.BackupParameters {
	p := backupv1.BackupParameters{
		Source:       e.database(e.source()),
		Destination:  g.destination(s, e),
		Verification: &backupv1.Verification{Enabled: new(false)},
	}
	for _, c := range changes {
		c(&p)
	}
	return p
}

// verified enables the verification of the first backup.
func verified(p *backupv1.BackupParameters) { p.Verification.Enabled = new(true) }

// emptied makes the deletion of the Backup delete its data, because the data of many large ones
// would fill the node.
func emptied(p *backupv1.BackupParameters) { p.DeletionPolicy = backupv1.Delete }

// object returns an object of one of the provider's kinds.
func object(kind, namespace, name string, forProvider any) (*unstructured.Unstructured, error) {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(forProvider)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s %s: %w", kind, name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"forProvider": spec}}}
	u.SetGroupVersionKind(backupv1.GroupVersion.WithKind(kind))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u, nil
}

// file creates a Backup.
func (g *ground) file(ctx context.Context, name string, p backupv1.BackupParameters) error {
	u, err := object("Backup", g.namespace, name, &p)
	if err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// backup returns the present state of a Backup, or the zero Backup if there is none.
func (g *ground) backup(name string) backupv1.Backup { return backupOf(g.world.Get("Backup", name)) }

func backupOf(u *unstructured.Unstructured) backupv1.Backup {
	b := backupv1.Backup{}
	if u != nil {
		// A field that cannot be converted stays empty, and the checks that need it fail.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &b)
	}
	return b
}

// says describes the state of a Backup.
func says(b backupv1.Backup) string {
	o := b.Status.AtProvider
	parts := []string{fmt.Sprintf("phase %s, %d backups", o.Phase, o.Count), conditions(b.Status.Conditions)}
	if f := o.LastFailure; f != nil {
		parts = append(parts, fmt.Sprintf("last failure %s: %s", f.Reason, f.Message))
	}
	return strings.Join(parts, ", ")
}

// conditions describes conditions.
func conditions(cs []xpv2.Condition) string {
	var out []string
	for _, c := range cs {
		out = append(out, fmt.Sprintf("%s %s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(out, ", ")
}

// is reports whether a condition has a status and, unless it is empty, a reason.
func is(b backupv1.Backup, typ xpv2.ConditionType, status, reason string) bool {
	c := b.GetCondition(typ)
	return string(c.Status) == status && (reason == "" || string(c.Reason) == reason)
}

// awaitBackup waits until ok returns true for a Backup.
func (g *ground) awaitBackup(ctx context.Context, within time.Duration, name, what string, ok func(backupv1.Backup) bool) error {
	return g.world.Await(ctx, within, "Backup "+name+" "+what, func() (bool, string) {
		b := g.backup(name)
		return b.Name != "" && ok(b), says(b)
	})
}

// annotate sets an annotation of a Backup to a new value, which requests an action, and returns the
// value.
func (g *ground) annotate(ctx context.Context, name, annotation string) (string, error) {
	value := strconv.FormatInt(time.Now().UnixNano(), 36)
	_, err := cluster.Patch(ctx, "Backup", g.namespace, name, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{annotation: value}}})
	return value, err
}

// outcome is the result of a backup: its ID, or the failure.
type outcome struct {
	id      string
	failure *backupv1.Failure
}

// begun is a backup that was requested, with what the status contained before.
type begun struct {
	name, value string

	known   []string
	failure *backupv1.Failure
}

// begin requests a backup.
func (g *ground) begin(ctx context.Context, name string) (begun, error) {
	before := g.backup(name).Status.AtProvider
	value, err := g.annotate(ctx, name, backupv1.RunNowAnnotation)
	return begun{name: name, value: value, known: ids(before), failure: before.LastFailure}, err
}

func ids(o backupv1.BackupObservation) []string {
	var out []string
	for _, b := range o.Backups {
		out = append(out, b.ID)
	}
	return out
}

// end waits for the end of a backup, be it a success or a failure.
func (g *ground) end(ctx context.Context, within time.Duration, b begun) (outcome, error) {
	out := outcome{}
	err := g.awaitBackup(ctx, within, b.name, "to have made a backup, or failed to", func(now backupv1.Backup) bool {
		o := now.Status.AtProvider
		if o.RunNow != b.value || o.Phase == backupv1.BackupRunning {
			return false
		}
		for _, id := range ids(o) {
			if !slices.Contains(b.known, id) {
				out.id = id
				return true
			}
		}
		if f := o.LastFailure; f != nil && (b.failure == nil || !f.Time.Equal(&b.failure.Time)) {
			out.failure = f
			return true
		}
		return false
	})
	return out, err
}

// succeed makes a backup and returns its ID.
func (g *ground) succeed(ctx context.Context, name string) (string, error) {
	b, err := g.begin(ctx, name)
	if err != nil {
		return "", err
	}
	return g.good(ctx, b)
}

// good waits until a backup has succeeded and returns its ID.
func (g *ground) good(ctx context.Context, b begun) (string, error) {
	out, err := g.end(ctx, done, b)
	if err != nil {
		return "", err
	}
	if out.failure != nil {
		return "", fmt.Errorf("backup %s failed: %s: %s", b.name, out.failure.Reason, out.failure.Message)
	}
	return out.id, nil
}

// proven waits until a backup was verified by a restore into a throw-away server.
func (g *ground) proven(ctx context.Context, name, id string) error {
	return g.awaitBackup(ctx, done, name, "to be verified as "+id, func(b backupv1.Backup) bool {
		return is(b, "Verified", "True", "") && b.Status.AtProvider.LastVerified == id
	})
}

// verify requests a verification of the newest backup.
func (g *ground) verify(ctx context.Context, name string) error {
	_, err := g.annotate(ctx, name, backupv1.VerifyNowAnnotation)
	return err
}

// remove deletes a Backup and checks that no object of it stays.
func (g *ground) remove(ctx context.Context, name string) error {
	if err := cluster.Delete(ctx, "Backup", g.namespace, name); err != nil {
		return err
	}
	if err := g.world.AwaitGone(ctx, done, "Backup", name); err != nil {
		return err
	}
	return g.nothingOf(ctx, backupv1.BackupLabel, name)
}

// workers are the kinds of objects that the provider creates for a Backup or Restore.
var workers = []string{"CronJob", "Job", "Pod", "Secret", "ServiceAccount", "NetworkPolicy", "PersistentVolumeClaim"}

// nothingOf waits until no object of a Backup or Restore is left.
func (g *ground) nothingOf(ctx context.Context, label, name string) error {
	return g.world.Await(ctx, soon, "all that "+name+" made to be gone", func() (bool, string) {
		var left []string
		for _, kind := range workers {
			for _, u := range g.world.List(kind) {
				if u.GetLabels()[label] == name {
					left = append(left, kind+" "+u.GetName())
				}
			}
		}
		return len(left) == 0, fmt.Sprintf("%v are there", left)
	})
}

// running returns the active Jobs of a Backup.
func (g *ground) running(name string) []string {
	var out []string
	for _, j := range g.world.List("Job") {
		if j.GetLabels()[backupv1.BackupLabel] == name && harness.Number(j, "status", "active") > 0 {
			out = append(out, j.GetName())
		}
	}
	return out
}

// whole checks that a store contains exactly the backups in the status: nothing of failed ones, and
// nothing half written.
func (g *ground) whole(ctx context.Context, s backupv1.StoreType, name string) error {
	// A first verification may run beside the one that was requested.
	err := g.world.Await(ctx, done, "the Jobs of "+name+" to end", func() (bool, string) {
		jobs := g.running(name)
		return len(jobs) == 0, fmt.Sprintf("%v still run", jobs)
	})
	if err != nil {
		return err
	}
	b := g.backup(name)
	have, err := g.folders(ctx, s, b.Status.AtProvider.Location)
	if err != nil {
		return err
	}
	want := ids(b.Status.AtProvider)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return fmt.Errorf("the store has %v, and Backup %s knows of %v", have, name, want)
	}
	return nil
}
