//go:build e2e

package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// Names of the cluster under test and its Backup.
const (
	ledgerName   = "ledger"
	ledgerBackup = ledgerName + "-backup"
)

// roleLabel is the label with the role of a DatabaseCluster's pod.
const roleLabel = "storeplane.example.com/role"

// timed is a database with a table whose rows were each written at a known time.
type timed struct {
	*ground

	store backupv1.StoreType

	// marks are times, by the number of rows that there were at the time.
	marks map[int]time.Time
	rows  int
}

func physical(s backupv1.StoreType) types.Feature {
	d := &timed{ground: newGround("e2e-backup-physical-" + string(s)), store: s, marks: map[int]time.Time{}}
	f := tests.Feature("physical backups to "+string(s), d.namespace).Cleared()
	check := f.Full
	if s == backupv1.Volume {
		check = f.Quick
	}
	check("archived, backed up in full and incrementally, and verified ("+string(s)+")", d.isBackedUp)
	if s == backupv1.Volume {
		f = f.Full("the volume of the backups grows with its claim", d.repositoryGrows).
			Full("a full volume of backups heals by expiry", d.heals)
	}
	if s != backupv1.Volume && s != backupv1.S3 {
		// The remaining checks are the same for all object stores.
		return f.Feature()
	}
	f = f.Full("restored to between two rows ("+string(s)+")", d.goesBack).
		Full("restored to between two rows after a failover ("+string(s)+")", d.goesBackAfterFailover)
	if s == backupv1.S3 {
		// Only the function may scale the server of a volume, and the last check requires the claim
		// to be deleted.
		f = f.Full("a Backup of the cluster's name is deleted, and the repository stays ("+string(s)+")", d.leavesRepository).
			Full("a restore that is killed twice holds every row ("+string(s)+")", d.beginsAgain).
			Full("a restored cluster that is adopted keeps its data and archives ("+string(s)+")", d.isAdopted).
			Full("a second restore under the same name archives ("+string(s)+")", d.restoresAgain).
			Full("archiving that fails is told in minutes ("+string(s)+")", d.reportsArchiving).
			Full("a restore beyond WAL that is missing fails and names it ("+string(s)+")", d.reportsHole).
			Full("a repository that is emptied is backed up again by itself ("+string(s)+")", d.losesRepository).
			Full("restored from the store alone, when claim and Backup are gone ("+string(s)+")", d.comesBack).
			Full("an empty database of the same name does not hide the old one ("+string(s)+")", d.asksWhich)
	}
	return f.Feature()
}

// encrypted reports whether the backups are encrypted with a passphrase, as they are in S3.
func (d *timed) encrypted() bool { return d.store == backupv1.S3 }

// keyName is the name of the Secret with the passphrase.
const keyName = ledgerName + "-key"

// encryption returns the encryption as in a claim.
func encryption() map[string]any {
	return map[string]any{"secretRef": map[string]any{"name": keyName, "key": "passphrase"}}
}

// place returns the destination of backups as in a claim.
func (d *timed) place() map[string]any {
	to := d.destination(d.store, engines[0])
	return map[string]any{
		"type": string(to.Type), "bucket": to.Bucket, "prefix": to.Prefix, "endpoint": to.Endpoint,
		"secretRef": map[string]any{"name": to.SecretRef.Name},
	}
}

// claimed creates the cluster with backups, once.
func (d *timed) claimed(ctx context.Context) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	if d.store != backupv1.Volume {
		if err := d.ground.store(ctx, d.store); err != nil {
			return err
		}
	}
	return d.once.Do("cluster", func() error {
		if err := d.secret(ctx, keyName, map[string]string{"passphrase": "what nobody else knows, and what is = odd: %"}); err != nil {
			return err
		}
		if err := d.claim(ctx); err != nil {
			return err
		}
		return d.exec(ctx, "CREATE TABLE seen (n int)")
	})
}

// claim applies the claim and waits until it is Ready.
func (d *timed) claim(ctx context.Context) error {
	backup := map[string]any{}
	if d.store != backupv1.Volume {
		backup["incrementalSchedule"] = "30 3 * * *"
		backup["destination"] = d.place()
	}
	if d.encrypted() {
		backup["encryption"] = encryption()
	}
	u, err := manifests.Read("backup/physical.yaml", map[string]string{"NAME": ledgerName, "NAMESPACE": d.namespace})
	if err != nil {
		return err
	}
	u.Object["spec"].(map[string]any)["backup"] = backup
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	return d.world.AwaitReady(ctx, done, "DatabaseCluster", ledgerName)
}

// exec runs a statement on the primary.
func (d *timed) exec(ctx context.Context, statement string) error {
	_, err := d.data(ctx, d.uri(engines[0], ledgerName), "exec", "postgresql", statement)
	return err
}

// write writes rows, and records for each a time at which it was written and the next one was not.
func (d *timed) write(ctx context.Context, rows int) error {
	for range rows {
		d.rows++
		// The row is written by a call of its own, because statements that are sent together are
		// one transaction.
		if err := d.exec(ctx, fmt.Sprintf("INSERT INTO seen VALUES (%d)", d.rows)); err != nil {
			return err
		}
		// Times of a restore are in whole seconds.
		out, err := d.data(ctx, d.uri(engines[0], ledgerName), "exec", "postgresql",
			"SELECT pg_sleep(1.2); SELECT extract(epoch FROM date_trunc('second', clock_timestamp()))::bigint; SELECT pg_sleep(1.2)")
		if err != nil {
			return err
		}
		seconds := int64(0)
		for line := range strings.Lines(out) {
			if n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64); err == nil {
				seconds = n
			}
		}
		if seconds == 0 {
			return fmt.Errorf("cannot tell when row %d was written: %q", d.rows, out)
		}
		d.marks[d.rows] = time.Unix(seconds, 0)
	}
	return nil
}

// start starts a Job of a CronJob, as kubectl create job --from does.
func (d *timed) start(ctx context.Context, cronJob, name string) error {
	err := d.world.Await(ctx, done, "CronJob "+cronJob, func() (bool, string) {
		return d.world.Get("CronJob", cronJob) != nil, "there is none"
	})
	if err != nil {
		return err
	}
	from, err := cluster.Kube.BatchV1().CronJobs(d.namespace).Get(ctx, cronJob, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot get CronJob %s: %w", cronJob, err)
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: d.namespace, Labels: from.Spec.JobTemplate.Labels, Annotations: from.Spec.JobTemplate.Annotations},
		Spec:       from.Spec.JobTemplate.Spec,
	}
	if _, err := cluster.Kube.BatchV1().Jobs(d.namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot start Job %s: %w", name, err)
	}
	return nil
}

// counts waits until the status of the Backup has so many backups.
func (d *timed) counts(ctx context.Context, n int32) error {
	return d.awaitBackup(ctx, givenUp, ledgerBackup, fmt.Sprintf("to have %d backups", n), func(b backupv1.Backup) bool {
		return b.Status.AtProvider.Count >= n
	})
}

// archived waits until all that was written is in the archive. The status reports that it can be
// restored up to then only minutes later, which the runbook waits for.
func (d *timed) archived(ctx context.Context) error {
	_, err := d.archivedSegment(ctx)
	return err
}

// archivedSegment waits until the segment with the last change is archived, and returns its name.
func (d *timed) archivedSegment(ctx context.Context) (string, error) {
	return d.archivedOn(ctx, d.primary())
}

// archivedOn does the same as archivedSegment for a given primary.
func (d *timed) archivedOn(ctx context.Context, primary string) (string, error) {
	out, err := d.psql(ctx, primary, "SELECT pg_walfile_name(pg_switch_wal())")
	if err != nil {
		return "", err
	}
	segment := strings.TrimSpace(out)
	return segment, d.world.Await(ctx, done, "segment "+segment+" to be archived", func() (bool, string) {
		out, err := d.psql(ctx, primary, "SELECT coalesce(last_archived_wal, '') FROM pg_stat_archiver")
		if err != nil {
			return false, err.Error()
		}
		// Names of segments of one timeline sort in their order.
		last := strings.TrimSpace(out)
		return last >= segment, "the last one is " + last
	})
}

// primary returns the name of the primary's pod.
func (d *timed) primary() string {
	for _, p := range d.world.List("Pod") {
		if l := p.GetLabels(); l[roleLabel] == "primary" && strings.HasPrefix(p.GetName(), ledgerName+"-") {
			return p.GetName()
		}
	}
	return ""
}

// psql runs a statement in a pod as PostgreSQL's superuser.
func (d *timed) psql(ctx context.Context, pod, statement string) (string, error) {
	return cluster.Exec(ctx, d.namespace, pod, "postgresql", nil, "psql", "-h", "/var/run/postgresql", "-U", "postgres", "-At", "-c", statement)
}

func (d *timed) isBackedUp(ctx context.Context, n notes) error {
	if err := d.claimed(ctx); err != nil {
		return err
	}
	if err := d.write(ctx, 1); err != nil {
		return err
	}
	if err := d.laysBait(ctx); err != nil {
		return err
	}
	// The first backup needs no request.
	if err := d.counts(ctx, 1); err != nil {
		return err
	}
	if err := d.start(ctx, ledgerName+"-backup-full", "scheduled-1"); err != nil {
		return err
	}
	if err := d.counts(ctx, 2); err != nil {
		return err
	}
	if err := d.write(ctx, 1); err != nil {
		return err
	}
	// With only one schedule, the backup after the first one is incremental.
	if d.store != backupv1.Volume {
		if err := d.start(ctx, ledgerName+"-backup-incr", "incremental-1"); err != nil {
			return err
		}
	}
	err := d.awaitBackup(ctx, givenUp, ledgerBackup, "to have an incremental backup", func(b backupv1.Backup) bool {
		return slices.ContainsFunc(ids(b.Status.AtProvider), func(id string) bool { return strings.HasSuffix(id, "I") })
	})
	if err != nil {
		return err
	}
	if _, err := d.annotate(ctx, ledgerBackup, backupv1.VerifyNowAnnotation); err != nil {
		return err
	}
	err = d.awaitBackup(ctx, givenUp, ledgerBackup, "to be verified", func(b backupv1.Backup) bool { return is(b, "Verified", "True", "") })
	if err != nil {
		return err
	}
	if err := d.bitHarmlessly(ctx); err != nil {
		return err
	}
	n.Addf("%v", ids(d.backup(ledgerBackup).Status.AtProvider))
	return d.healthy(ctx)
}

func (d *timed) healthy(ctx context.Context) error { return d.archives(ctx, ledgerName) }

// archives waits until BackupHealthy and ArchivingHealthy of a cluster are True.
func (d *timed) archives(ctx context.Context, name string) error {
	return d.world.Await(ctx, givenUp, "BackupHealthy and ArchivingHealthy of "+name, func() (bool, string) {
		c := d.world.Claim("DatabaseCluster", name)
		return c.Is("BackupHealthy") && c.Is("ArchivingHealthy"), c.String()
	})
}

// back restores to a mark in a new cluster, and checks that it has exactly the rows of that time.
func (d *timed) back(ctx context.Context, name string, mark int) error {
	if err := d.archived(ctx); err != nil {
		return err
	}
	return d.filled(ctx, name, mark, d.at(mark))
}

// at returns the restoreFrom of a claim that restores to a mark.
func (d *timed) at(mark int) map[string]any {
	return map[string]any{
		"backupRef": map[string]any{"name": ledgerBackup},
		"time":      d.marks[mark].UTC().Format(time.RFC3339),
	}
}

// filled restores a new cluster, checks that it has exactly so many rows, and deletes it.
func (d *timed) filled(ctx context.Context, name string, rows int, from map[string]any) error {
	if err := d.fill(ctx, name, from); err != nil {
		return err
	}
	return d.holds(ctx, name, rows)
}

// fill applies the claim of a new cluster that is restored.
func (d *timed) fill(ctx context.Context, name string, from map[string]any) error {
	// JSON on one line is valid YAML.
	line, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("cannot encode restoreFrom: %w", err)
	}
	return d.create(ctx, "backup/postgresql.yaml", map[string]string{"NAME": name, "RESTORE": "restoreFrom: " + string(line)})
}

// failsToFill waits until a restore has failed with a message that contains these words.
func (d *timed) failsToFill(ctx context.Context, name string, words ...string) error {
	return d.world.Await(ctx, givenUp, "the restore into "+name+" to fail", func() (bool, string) {
		u := d.world.Get("DatabaseCluster", name)
		phase, message := harness.Field(u, "status", "phase"), harness.Field(u, "status", "message")
		missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(message, w) })
		return phase == "Failed" && !missing, phase + ": " + message
	})
}

// holds waits until a cluster is Ready, checks that it has exactly so many rows, and deletes it.
func (d *timed) holds(ctx context.Context, name string, rows int) error {
	if err := d.world.AwaitReady(ctx, givenUp, "DatabaseCluster", name); err != nil {
		return err
	}
	if err := d.has(ctx, name, rows); err != nil {
		return err
	}
	return d.deleted(ctx, name)
}

// has checks that a cluster has exactly so many rows, and the rows beside.
func (d *timed) has(ctx context.Context, name string, rows int, beside ...int) error {
	out, err := d.data(ctx, d.uri(engines[0], name), "exec", "postgresql", "SELECT string_agg(n::text, ',' ORDER BY n) FROM seen")
	if err != nil {
		return err
	}
	var want []string
	for n := range rows {
		want = append(want, strconv.Itoa(n+1))
	}
	for _, n := range beside {
		want = append(want, strconv.Itoa(n))
	}
	if have := strings.TrimSpace(out); have != strings.Join(want, ",") {
		return fmt.Errorf("DatabaseCluster %s has rows %s, want %v", name, have, want)
	}
	return nil
}

func (d *timed) deleted(ctx context.Context, name string) error {
	if err := cluster.Delete(ctx, "DatabaseCluster", d.namespace, name); err != nil {
		return err
	}
	return d.world.AwaitGone(ctx, done, "DatabaseCluster", name)
}

// written waits until the cluster has rows and backups, and creates them if there are none.
func (d *timed) written(ctx context.Context, n notes) error {
	if err := d.claimed(ctx); err != nil {
		return err
	}
	if d.rows > 0 {
		return d.counts(ctx, 1)
	}
	return d.isBackedUp(ctx, n)
}

func (d *timed) goesBack(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	if err := d.write(ctx, 3); err != nil {
		return err
	}
	return d.back(ctx, "back", d.rows-2)
}

func (d *timed) goesBackAfterFailover(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	old := d.primary()
	if err := cluster.Kube.CoreV1().Pods(d.namespace).Delete(ctx, old, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}); err != nil {
		return fmt.Errorf("cannot delete pod %s: %w", old, err)
	}
	err := d.world.Await(ctx, soon, "another primary", func() (bool, string) {
		now := d.primary()
		return now != "" && now != old, "it is " + now
	})
	if err != nil {
		return err
	}
	// Labels change before the endpoints of Services.
	err = d.world.Await(ctx, soon, "the primary to answer", func() (bool, string) {
		err := d.exec(ctx, "SELECT 1")
		return err == nil, fmt.Sprint(err)
	})
	if err != nil {
		return err
	}
	if err := d.world.AwaitReady(ctx, done, "DatabaseCluster", ledgerName); err != nil {
		return err
	}
	if err := d.write(ctx, 3); err != nil {
		return err
	}
	return d.back(ctx, "back-again", d.rows-2)
}

// reportsArchiving checks that archiving is reported as failed while the store is down.
func (d *timed) reportsArchiving(ctx context.Context, n notes) error {
	if err := d.claimed(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if err := d.scaleS3(ctx, 0); err != nil {
		return err
	}
	err := d.write(ctx, 1)
	if err == nil {
		err = d.world.Await(ctx, done, "ArchivingHealthy to be False", func() (bool, string) {
			c := d.world.Claim("DatabaseCluster", ledgerName)
			return c.Condition("ArchivingHealthy").Status == metav1.ConditionFalse, c.String()
		})
	}
	n.Addf("told after %.0fs", time.Since(begin).Seconds())
	if err := errors.Join(err, d.scaleS3(ctx, 1)); err != nil {
		return err
	}
	return d.healthy(ctx)
}

// comesBack restores the last state from the store alone.
func (d *timed) comesBack(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	if err := d.write(ctx, 1); err != nil {
		return err
	}
	if err := d.archived(ctx); err != nil {
		return err
	}
	if err := d.deleted(ctx, ledgerName); err != nil {
		return err
	}
	if err := d.world.AwaitGone(ctx, done, "Backup", ledgerBackup); err != nil {
		return err
	}
	return d.filled(ctx, ledgerName+"-again", d.rows, map[string]any{"destination": d.place(), "name": ledgerName, "encryption": encryption()})
}

// reportsHole checks that a restore to the end fails if a segment of WAL is missing, instead of
// ending there as if nothing came after it.
func (d *timed) reportsHole(ctx context.Context, n notes) error {
	if err := d.written(ctx, n); err != nil {
		return err
	}
	var segments []string
	for range 3 {
		if err := d.write(ctx, 1); err != nil {
			return err
		}
		segment, err := d.archivedSegment(ctx)
		if err != nil {
			return err
		}
		segments = append(segments, segment)
	}
	status := d.backup(ledgerBackup).Status.AtProvider
	if err := d.lose(ctx, path.Join(status.Location, "archive"), segments[1]); err != nil {
		return err
	}
	const name = "holed"
	if err := d.fill(ctx, name, map[string]any{"backupRef": map[string]any{"name": ledgerBackup}}); err != nil {
		return err
	}
	if err := d.failsToFill(ctx, name, "the archive has a hole: segment "+segments[1]+" is missing"); err != nil {
		return err
	}
	if err := d.deleted(ctx, name); err != nil {
		return err
	}
	// What comes after the gap can be restored from a backup that begins after it.
	if err := d.start(ctx, ledgerName+"-backup-full", "full-after-hole"); err != nil {
		return err
	}
	return d.counts(ctx, status.Count+1)
}

// lose removes a segment from the store.
func (d *timed) lose(ctx context.Context, archive, segment string) error {
	files, err := d.all(ctx, d.store, archive)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(files, func(f string) bool { return strings.HasPrefix(path.Base(f), segment+"-") })
	if i < 0 {
		return fmt.Errorf("segment %s is not in the archive: %v", segment, files)
	}
	_, err = d.on(ctx, string(d.store), "rm", files[i])
	return err
}

// asksWhich checks that a restore requires a systemIdentifier if the store contains backups of a
// deleted database and of a new one of the same name.
func (d *timed) asksWhich(ctx context.Context, n notes) error {
	if d.world == nil || d.world.Get("DatabaseCluster", ledgerName) != nil {
		if err := d.comesBack(ctx, n); err != nil {
			return err
		}
	}
	if _, err := harness.Kubectl(ctx, "delete", "pvc", "-n", d.namespace, "-l", "app.kubernetes.io/instance="+ledgerName+",app.kubernetes.io/component=postgresql"); err != nil {
		return err
	}
	if err := d.claim(ctx); err != nil {
		return err
	}
	err := d.awaitBackup(ctx, givenUp, ledgerBackup, "to tell its backups from the old ones", func(b backupv1.Backup) bool {
		o := b.Status.AtProvider
		return o.Count > 0 && len(o.OtherSystems) == 1 && o.FirstRecoverableTime != nil && o.FirstRecoverableTime.After(o.OtherSystems[0].LastBackupTime.Time)
	})
	if err != nil {
		return err
	}
	status := d.backup(ledgerBackup).Status.AtProvider
	old := status.OtherSystems[0].SystemIdentifier
	const name = "which"
	if err := d.fill(ctx, name, map[string]any{"backupRef": map[string]any{"name": ledgerBackup}}); err != nil {
		return err
	}
	if err := d.failsToFill(ctx, name, "set restoreFrom.systemIdentifier", old, status.SystemIdentifier); err != nil {
		return err
	}
	which := harness.Patch{"spec": harness.Patch{"restoreFrom": harness.Patch{"systemIdentifier": old}}}
	if _, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, name, which); err != nil {
		return err
	}
	return d.holds(ctx, name, d.rows)
}
