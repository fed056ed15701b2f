//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// bulk is how many MiB of incompressible data the database of these checks has, so that a backup
// takes long enough to be disturbed.
const bulk = "1024"

func faults() types.Feature {
	g := newGround("e2e-backup-faults")
	g.bulk = bulk
	f := tests.Feature("faults", g.namespace).Cleared()
	for _, c := range []struct {
		name  string
		fault func(context.Context, string, notes) error
	}{
		{"store is unreachable", g.unreachable},
		{"credentials of the store are wrong", g.denied},
		{"bucket does not exist", g.missesBucket},
		{"store dies in the middle of an upload", g.storeDies},
		{"pod of a backup is killed in the middle", g.podDies},
		{"database restarts in the middle of a dump", g.databaseRestarts},
		{"one byte of an object changes", g.rots},
		{"manifest is deleted", g.losesManifest},
		{"disk of a verification is full", g.fills},
		{"pods of the provider are killed at every stage", g.losesProvider},
	} {
		f = f.Full(c.name, g.recovers(strings.ReplaceAll(c.name, " ", "-"), c.fault))
	}
	return f.Feature()
}

// bigEngine is the engine of these checks.
var bigEngine = engines[0]

// recovers returns a check that after a fault the next backup succeeds and can be restored, and
// that nothing of the failed one is left.
func (g *ground) recovers(long string, fault func(context.Context, string, notes) error) suite.Check {
	name := strings.Trim(long[:min(len(long), 30)], "-")
	return func(ctx context.Context, n notes) error {
		if err := g.prepared(ctx, bigEngine, backupv1.S3); err != nil {
			return err
		}
		if err := fault(ctx, name, n); err != nil {
			return err
		}
		id, err := g.succeed(ctx, name)
		if err != nil {
			return fmt.Errorf("the next backup: %w", err)
		}
		err = g.awaitBackup(ctx, soon, name, "to be Ready after its next success", func(b backupv1.Backup) bool {
			return is(b, "Ready", "True", "") && b.Status.AtProvider.LastFailure == nil
		})
		if err != nil {
			return err
		}
		if err := g.verify(ctx, name); err != nil {
			return err
		}
		if err := g.proven(ctx, name, id); err != nil {
			return err
		}
		parts, err := g.uploads(ctx)
		if err != nil {
			return err
		}
		if len(parts) > 0 {
			return fmt.Errorf("the store keeps parts of what was never finished: %v", parts)
		}
		if err := g.whole(ctx, backupv1.S3, name); err != nil {
			return err
		}
		return g.remove(ctx, name)
	}
}

// big creates the Backup of a check.
func (g *ground) big(ctx context.Context, name string, changes ...change) error {
	return g.file(ctx, name, g.parameters(bigEngine, backupv1.S3, append(changes, verified, emptied)...))
}

// unwell waits until a Backup is not Ready for one of the reasons.
func (g *ground) unwell(ctx context.Context, name string, reasons ...string) error {
	return g.awaitBackup(ctx, givenUp, name, "to be unready because of "+strings.Join(reasons, " or "), func(b backupv1.Backup) bool {
		return slices.ContainsFunc(reasons, func(r string) bool { return is(b, "Ready", "False", r) })
	})
}

func (g *ground) well(ctx context.Context, name string) error {
	return g.awaitBackup(ctx, givenUp, name, "to reach its database and store", func(b backupv1.Backup) bool {
		return b.Status.AtProvider.Checked != "" && b.Status.AtProvider.Phase == backupv1.BackupScheduled || is(b, "Ready", "True", "")
	})
}

func (g *ground) unreachable(ctx context.Context, name string, n notes) error {
	if err := g.scaleS3(ctx, 0); err != nil {
		return err
	}
	begin := time.Now()
	err := g.big(ctx, name)
	if err == nil {
		err = g.unwell(ctx, name, "StoreUnreachable")
	}
	n.Addf("said after %.0fs", time.Since(begin).Seconds())
	if err := errors.Join(err, g.scaleS3(ctx, 1)); err != nil {
		return err
	}
	return g.well(ctx, name)
}

func (g *ground) denied(ctx context.Context, name string, _ notes) error {
	right, err := cluster.Get(ctx, "Secret", g.namespace, "s3")
	if err != nil {
		return err
	}
	wrong := right.DeepCopy()
	wrong.SetName("s3-wrong")
	wrong.SetResourceVersion("")
	wrong.SetUID("")
	wrong.Object["stringData"] = map[string]any{"AWS_SECRET_ACCESS_KEY": "not this one"}
	if _, err := cluster.Create(ctx, wrong); err != nil {
		return err
	}
	if err := g.big(ctx, name, func(p *backupv1.BackupParameters) { p.Destination.SecretRef.Name = "s3-wrong" }); err != nil {
		return err
	}
	if err := g.unwell(ctx, name, "StoreDenied"); err != nil {
		return err
	}
	// A user corrects the Secret.
	if _, err := cluster.Patch(ctx, "Secret", g.namespace, "s3-wrong", harness.Patch{"stringData": harness.Patch{"AWS_SECRET_ACCESS_KEY": secretKey}}); err != nil {
		return err
	}
	return g.well(ctx, name)
}

func (g *ground) missesBucket(ctx context.Context, name string, _ notes) error {
	if err := g.big(ctx, name, func(p *backupv1.BackupParameters) { p.Destination.Bucket = "nowhere" }); err != nil {
		return err
	}
	if err := g.unwell(ctx, name, "BucketMissing"); err != nil {
		return err
	}
	_, err := cluster.Patch(ctx, "Backup", g.namespace, name, harness.Patch{"spec": harness.Patch{"forProvider": harness.Patch{"destination": harness.Patch{"bucket": bucket}}}})
	if err != nil {
		return err
	}
	return g.well(ctx, name)
}

// midway begins a backup and returns once parts of it are in the store.
func (g *ground) midway(ctx context.Context, name string) (begun, error) {
	if err := g.big(ctx, name); err != nil {
		return begun{}, err
	}
	if err := g.well(ctx, name); err != nil {
		return begun{}, err
	}
	b, err := g.begin(ctx, name)
	if err != nil {
		return b, err
	}
	// No event of the cluster reports what arrives in a store.
	err = wait.For(func(ctx context.Context) (bool, error) {
		parts, err := g.uploads(ctx)
		return len(parts) > 8, err
	}, wait.WithContext(ctx), wait.WithTimeout(done), wait.WithInterval(100*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return b, fmt.Errorf("cannot see parts of a backup come into the store: %w", err)
	}
	return b, nil
}

// failedWith checks that a backup failed for one of the reasons, or was retried automatically until
// it succeeded.
func (g *ground) failedWith(ctx context.Context, b begun, n notes, reasons ...string) error {
	out, err := g.end(ctx, givenUp, b)
	if err != nil {
		return err
	}
	if out.failure == nil {
		n.Addf("tried again by itself")
		return nil
	}
	n.Addf("%s", out.failure.Message)
	if !slices.Contains(reasons, out.failure.Reason) {
		return fmt.Errorf("backup %s failed because of %s (%s), not of %v", b.name, out.failure.Reason, out.failure.Message, reasons)
	}
	return nil
}

func (g *ground) storeDies(ctx context.Context, name string, n notes) error {
	b, err := g.midway(ctx, name)
	if err != nil {
		return err
	}
	if err := g.scaleS3(ctx, 0); err != nil {
		return err
	}
	err = g.failedWith(ctx, b, n, "StoreUnreachable")
	return errors.Join(err, g.scaleS3(ctx, 1))
}

func (g *ground) podDies(ctx context.Context, name string, n notes) error {
	b, err := g.midway(ctx, name)
	if err != nil {
		return err
	}
	pods := g.pods(backupv1.BackupLabel, name)
	for _, p := range pods {
		if harness.Field(g.world.Get("Pod", p), "status", "phase") != "Running" {
			continue
		}
		if err := cluster.Kube.CoreV1().Pods(g.namespace).Delete(ctx, p, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
			return fmt.Errorf("cannot delete pod %s: %w", p, err)
		}
	}
	return g.failedWith(ctx, b, n, "Interrupted", "PodLost", "PodFailed")
}

func (g *ground) databaseRestarts(ctx context.Context, name string, n notes) error {
	b, err := g.midway(ctx, name)
	if err != nil {
		return err
	}
	pod := bigEngine.source() + "-postgresql-0"
	if err := cluster.Kube.CoreV1().Pods(g.namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", pod, err)
	}
	if err := g.failedWith(ctx, b, n, "SourceUnreachable", "ToolFailed"); err != nil {
		return err
	}
	return g.world.AwaitReady(ctx, started, "DatabaseCluster", bigEngine.source())
}

// disproved requests a verification and waits until it fails for one of the reasons.
func (g *ground) disproved(ctx context.Context, name string, reasons ...string) error {
	if err := g.verify(ctx, name); err != nil {
		return err
	}
	return g.awaitBackup(ctx, givenUp, name, "to be disproved because of "+strings.Join(reasons, " or "), func(b backupv1.Backup) bool {
		return slices.ContainsFunc(reasons, func(r string) bool { return is(b, "Verified", "False", r) })
	})
}

func (g *ground) rots(ctx context.Context, name string, _ notes) error {
	if err := g.big(ctx, name); err != nil {
		return err
	}
	id, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	object, err := g.largest(ctx, backupv1.S3, g.backup(name).Status.AtProvider.Location, id)
	if err != nil {
		return err
	}
	if _, err := g.on(ctx, "s3", "flip", object); err != nil {
		return err
	}
	if err := g.disproved(ctx, name, "BackupCorrupt"); err != nil {
		return err
	}
	// A restore refuses the backup too.
	if err := g.emptied(ctx, bigEngine); err != nil {
		return err
	}
	if err := g.restoreFile(ctx, "rotten", bigEngine, from(name), false); err != nil {
		return err
	}
	if err := g.refused(ctx, "rotten", "BackupCorrupt"); err != nil {
		return err
	}
	_, err = g.on(ctx, "s3", "rm", path.Dir(object))
	return err
}

func (g *ground) losesManifest(ctx context.Context, name string, _ notes) error {
	if err := g.big(ctx, name); err != nil {
		return err
	}
	id, err := g.succeed(ctx, name)
	if err != nil {
		return err
	}
	folder := path.Join(bucketFolder, g.backup(name).Status.AtProvider.Location, id)
	if _, err := g.on(ctx, "s3", "rm", path.Join(folder, "manifest.json")); err != nil {
		return err
	}
	if err := g.disproved(ctx, name, "BackupMissing", "BackupCorrupt"); err != nil {
		return err
	}
	// A backup without a manifest is only reported, and a user has to remove it.
	_, err = g.on(ctx, "s3", "rm", folder)
	return err
}

// fills fills the disk of a pod. The kubelet checks disks about once a minute, so the throw-away
// server has to run for longer than that.
func (g *ground) fills(ctx context.Context, name string, n notes) error {
	if err := g.big(ctx, name, func(p *backupv1.BackupParameters) {
		p.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{
			corev1.ResourceEphemeralStorage: resource.MustParse("64Mi"), corev1.ResourceMemory: resource.MustParse("512Mi"),
		}}
		p.Verification.Query = "SELECT true FROM pg_sleep(180)"
	}); err != nil {
		return err
	}
	if _, err := g.succeed(ctx, name); err != nil {
		return err
	}
	begin := time.Now()
	if err := g.disproved(ctx, name, "NoSpace", "PodLost", "PodFailed", "Evicted"); err != nil {
		return err
	}
	n.Addf("said after %.0fs", time.Since(begin).Seconds())
	_, err := cluster.Patch(ctx, "Backup", g.namespace, name, harness.Patch{"spec": harness.Patch{"forProvider": harness.Patch{
		"resources": nil, "verification": harness.Patch{"query": nil},
	}}})
	return err
}

// losesProvider kills the provider during a check, a backup, a verification and a restore, and
// checks that backup and verification run only once.
func (g *ground) losesProvider(ctx context.Context, name string, n notes) error {
	if err := g.big(ctx, name); err != nil {
		return err
	}
	for _, stage := range []string{"check", "backup", "verify"} {
		if stage == "backup" {
			if err := g.well(ctx, name); err != nil {
				return err
			}
			if _, err := g.annotate(ctx, name, backupv1.RunNowAnnotation); err != nil {
				return err
			}
		}
		err := g.world.Await(ctx, done, "a Job of action "+stage, func() (bool, string) {
			return len(g.jobs(name, stage)) > 0, "there is none"
		})
		if err != nil {
			return err
		}
		if err := cluster.KillProvider(ctx, started); err != nil {
			return err
		}
	}
	err := g.awaitBackup(ctx, givenUp, name, "to be verified", func(b backupv1.Backup) bool { return is(b, "Verified", "True", "") })
	if err != nil {
		return err
	}
	if err := g.emptied(ctx, bigEngine); err != nil {
		return err
	}
	if err := g.restoreFile(ctx, "without-provider", bigEngine, from(name), false); err != nil {
		return err
	}
	err = g.world.Await(ctx, done, "the Job of a Restore", func() (bool, string) {
		return slices.ContainsFunc(g.world.List("Job"), func(j *unstructured.Unstructured) bool {
			return j.GetLabels()[backupv1.RestoreLabel] == "without-provider"
		}), "there is none"
	})
	if err != nil {
		return err
	}
	if err := cluster.KillProvider(ctx, started); err != nil {
		return err
	}
	if _, err := g.completed(ctx, "without-provider"); err != nil {
		return err
	}
	if err := g.same(ctx, bigEngine); err != nil {
		return err
	}
	for _, stage := range []string{"backup", "verify"} {
		if jobs := g.jobs(name, stage); len(jobs) != 1 {
			return fmt.Errorf("there were %d Jobs to %s: %v", len(jobs), stage, jobs)
		}
	}
	n.Addf("killed while it checked, backed up, verified and restored")
	return nil
}

// jobs returns the names of all Jobs that there ever were for an action of a Backup.
func (g *ground) jobs(name, action string) []string {
	var out []string
	for _, k := range g.world.Keys() {
		if k.Kind != "Job" {
			continue
		}
		labels := g.world.History(k.Kind, k.Name)[0].Object.GetLabels()
		if labels[backupv1.BackupLabel] == name && labels[backupv1.ActionLabel] == action {
			out = append(out, k.Name)
		}
	}
	return out
}
