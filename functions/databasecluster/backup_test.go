package databasecluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

const backedUp = `{size: 2, version: '17', backup: {enabled: true, incrementalSchedule: '@hourly', retention: 4w,
  destination: {type: s3, bucket: b, prefix: team, endpoint: 'https://store.example.com', secretRef: {name: store}},
  encryption: {secretRef: {name: key, key: passphrase}}}}`

func storeSecrets(t testing.TB, c *crossplane) {
	c.Others = append(c.Others, functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "id-of-the-store", "AWS_SECRET_ACCESS_KEY": "secret-of-the-store"}),
		functionstest.Secret(t, "key", map[string]string{"passphrase": "secret-passphrase"}))
}

// TestBackup: once the database runs, its backups are scheduled and the first one begins.
func TestBackup(t *testing.T) {
	c := simulate(t, backedUp)
	c.Serve("backup")
	storeSecrets(t, c)
	c.Reconcile()
	for _, n := range []string{"backup", "backup-full", "backup-incr"} {
		if c.Observed[n] != nil {
			t.Errorf("%s is there before there is a database", n)
		}
	}
	c.Settle()

	tasks := map[string]backup.Task{}
	for _, n := range []string{"backup-full", "backup-incr"} {
		cron := functionstest.As[batchv1.CronJob](t, c.Observed[n])
		pod := cron.Spec.JobTemplate.Spec.Template
		for _, labels := range []map[string]string{cron.Labels, cron.Spec.JobTemplate.Labels, pod.Labels} {
			if labels[backupv1.BackupLabel] != "orders-backup" || labels[backupv1.ActionLabel] != "backup" {
				t.Errorf("%s: the provider does not know it by %v", n, labels)
			}
		}
		if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
			t.Errorf("%s has a token", n)
		}
		if image := pod.Spec.Containers[0].Image; !strings.HasSuffix(image, "/backup:postgresql-17") {
			t.Errorf("%s runs %s", n, image)
		}
		task := backup.Task{}
		if err := json.Unmarshal([]byte(pod.Spec.Containers[0].Env[0].Value), &task); err != nil {
			t.Fatal(err)
		}
		tasks[n] = task
	}
	full := backup.Task{
		Action: backup.Backup, Method: backupv1.Physical, Namespace: "team", Name: "orders", Database: backup.Database{Engine: "postgresql"},
		Destination: backupv1.Destination{Type: "s3", Bucket: "b", Prefix: "team", Endpoint: "https://store.example.com", SecretRef: &backupv1.LocalReference{Name: "store"}},
		Retention:   "4w", Encrypted: true, Full: true, Stanza: "7000000000000000001",
		Hosts: []string{"orders-postgresql-0.orders-postgresql.team.svc", "orders-postgresql-1.orders-postgresql.team.svc"},
	}
	incr := full
	incr.Full = false
	if diff := cmp.Diff(map[string]backup.Task{"backup-full": full, "backup-incr": incr}, tasks); diff != "" {
		t.Errorf("tasks: -want, +got:\n%s", diff)
	}

	want := backupv1.BackupParameters{
		Source:      backupv1.Database{Type: "postgresql", Version: "17", Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}},
		Destination: full.Destination, Method: backupv1.Physical, Retention: "4w", DeletionPolicy: backupv1.Orphan,
		Encryption: &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "key", Key: "passphrase"}},
	}
	watcher := functionstest.As[backupv1.Backup](t, c.Observed["backup"])
	if diff := cmp.Diff(want, watcher.Spec.ForProvider); diff != "" || watcher.Name != "orders-backup" {
		t.Errorf("Backup %s: -want, +got:\n%s", watcher.Name, diff)
	}

	for n, o := range c.Observed {
		text := o.String()
		for _, secret := range []string{"id-of-the-store", "secret-of-the-store", "secret-passphrase"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds a secret", n)
			}
		}
	}
	if c.Observed["repository"] != nil {
		t.Errorf("an object store needs no server of a volume")
	}

	c.Edit(true, "hibernated")
	c.Reconcile()
	if cron := functionstest.As[batchv1.CronJob](t, c.Observed["backup-full"]); cron.Spec.Suspend == nil || !*cron.Spec.Suspend {
		t.Errorf("nothing is backed up while the servers sleep")
	}
}

// TestBackupConditions: conditions show what is wrong with backups.
func TestBackupConditions(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	step := func(what, wantBackup, wantArchiving, wantPhase string) {
		t.Helper()
		c.Reconcile()
		if b, a := c.ConditionLine("BackupHealthy"), c.ConditionLine("ArchivingHealthy"); b != wantBackup || a != wantArchiving || c.Phase() != wantPhase {
			t.Errorf("%s: want %q, %q, %s, got %q, %q, %s", what, wantBackup, wantArchiving, wantPhase, b, a, c.Phase())
		}
	}
	const ready = `{conditions: [{type: Ready, status: "True", reason: Available}, {type: Verified, status: "True", reason: Verified}]}`
	c.SetStatus("backup", `{}`)
	step("Nothing is known", "False Pending No backup has been made yet", "True Archiving", "Running")
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "False", reason: Failed, message: It failed}], atProvider: {lastFailure: {time: "2026-01-01T00:00:00Z", reason: StoreDenied, message: "cannot make a backup: 403"}}}`)
	step("The tool's words", "False BackupFailed cannot make a backup: 403", "True Archiving", "Running")
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available, message: "The last backup failed"}, {type: Verified, status: "True", reason: Verified}], atProvider: {lastFailure: {time: "2026-01-01T00:00:00Z", reason: StoreFull, message: "cannot make a backup: there is no room"}}}`)
	step("One failure, and an older backup is good", "False BackupFailed cannot make a backup: there is no room", "True Archiving", "Running")
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available}, {type: Verified, status: "False", reason: BackupCorrupt, message: It is damaged}]}`)
	step("It cannot be restored", "False NotRestorable It is damaged", "True Archiving", "Running")
	c.SetStatus("backup", ready)
	step("All is well", "True StoredInCluster Backups are on a volume in this cluster and share its fate: set backup.destination, or the installation's", "True Archiving", "Running")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Failing = "no such bucket" })
	step("Archiving fails", "False Failing What is written is not archived: no such bucket", "False Failing What is written is not archived: no such bucket", "Degraded")
	c.Edit(true, "hibernated")
	c.Settle()
	asleep := "False Failing Hibernated, with data that is on the volumes alone until it is resumed. What is written is not archived: no such bucket"
	step("It sleeps while archiving fails", asleep, asleep, "Hibernated")
	c.Edit(false, "hibernated")
	c.Settle()
	c.ReportCluster(func(r *instance.Cluster) {
		r.Problems = []instance.Problem{{Subject: instance.SubjectBackup, Message: "cannot set up the repository"}}
	})
	step("The repository is not there", "False RepositoryNotReady cannot set up the repository", "False RepositoryNotReady cannot set up the repository", "Running")
}

// TestStanza: a cluster that was restored backs up into a stanza of its own, and keeps it when the
// reports of its instance managers are gone.
func TestStanza(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	stanza := func() string {
		task := backup.Task{}
		cron := functionstest.As[batchv1.CronJob](t, c.Observed["backup-full"])
		if err := json.Unmarshal([]byte(cron.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Env[0].Value), &task); err != nil {
			t.Fatal(err)
		}
		return task.Stanza
	}
	c.ReportCluster(func(r *instance.Cluster) { r.System = "7000000000000000001" })
	c.Reconcile()
	if got := stanza(); got != "7000000000000000001" {
		t.Errorf("a cluster that was not restored, or whose managers are older: got %s", got)
	}
	c.ReportCluster(func(r *instance.Cluster) { r.Stanza = "7000000000000000001-0a1b2c3d" })
	c.Reconcile()
	if got := stanza(); got != "7000000000000000001-0a1b2c3d" {
		t.Errorf("a cluster that was restored: got %s", got)
	}
	c.ReportCluster(func(r *instance.Cluster) { r.System, r.Stanza = "", "" })
	c.Reconcile()
	if got := stanza(); got != "7000000000000000001-0a1b2c3d" {
		t.Errorf("a cluster whose reports are gone: got %s", got)
	}
}

// TestSlot: servers keep WAL until it is archived, once an instance manager reports a stanza: one
// of an older version reports none, and would never release the WAL.
func TestSlot(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	for stanza, want := range map[string]any{"": nil, "7000000000000000001": map[string]any{instance.ArchiveSlot: map[string]any{"type": "physical"}}} {
		c.ReportCluster(func(r *instance.Cluster) { r.Stanza = stanza })
		c.Reconcile()
		if diff := cmp.Diff(want, dynamic(t, c)["slots"]); diff != "" {
			t.Errorf("a manager that reports stanza %q: -want, +got:\n%s", stanza, diff)
		}
	}
}

// firstBackup returns the component of the Job that makes the first backup.
func firstBackup(t testing.TB, c *crossplane) string {
	t.Helper()
	for n := range c.Observed {
		if strings.HasPrefix(n, "backup-first-") {
			return n
		}
	}
	t.Fatal("there is no Job that makes the first backup")
	return ""
}

// TestArchiveGap: lost WAL is reported, and a backup begins that ends the gap.
func TestArchiveGap(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.Reconcile()
	jobs := func() []string {
		return slices.Sorted(maps.Keys(maps.Collect(func(yield func(string, bool) bool) {
			for n := range c.Observed {
				if strings.HasPrefix(n, "backup-gap") && !yield(n, true) {
					return
				}
			}
		})))
	}
	if got := jobs(); len(got) != 0 {
		t.Errorf("there is no gap, and there are %v", got)
	}
	gap := instance.Gap{First: "000000010000000000000007", Last: "000000010000000000000009"}
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Gaps = []instance.Gap{gap} })
	c.Reconcile()
	got := jobs()
	if len(got) != 1 {
		t.Fatalf("want one Job that ends the gap, got %v", got)
	}
	want := "False ArchiveGap The repository holds no backup: nothing can be restored until Job orders-" + got[0] + " has made one"
	if v := c.ConditionLine("ArchivingHealthy"); v != want || c.Phase() != "Degraded" {
		t.Errorf("want %q, Degraded, got %q, %s", want, v, c.Phase())
	}
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.BackedUp = true })
	c.Reconcile()
	want = "False ArchiveGap WAL 000000010000000000000007 to 000000010000000000000009 is lost: what was written after it can be restored once Job orders-" + got[0] + " has made a backup"
	if v := c.ConditionLine("ArchivingHealthy"); v != want || c.Phase() != "Degraded" {
		t.Errorf("want %q, Degraded, got %q, %s", want, v, c.Phase())
	}
	task := backup.Task{}
	job := functionstest.As[batchv1.Job](t, c.Observed[got[0]])
	if err := json.Unmarshal([]byte(job.Spec.Template.Spec.Containers[0].Env[0].Value), &task); err != nil || !task.Full {
		t.Errorf("want a full backup, got %+v, %v", task, err)
	}

	fail := func(name string, at time.Time) {
		c.SetStatus(name, fmt.Sprintf("{failed: 1, conditions: [{type: Failed, status: 'True', reason: PodFailurePolicy, lastTransitionTime: %q}]}", at.Format(time.RFC3339)))
		c.Reconcile()
		c.Reconcile() // By then the objects that are no longer desired are deleted.
	}
	for range 3 {
		tried := jobs()
		if fail(tried[0], time.Now()); !slices.Equal(jobs(), tried) {
			t.Errorf("it has failed just now: want %v, got %v", tried, jobs())
		}
		// No event triggers the next attempt, so the function must be called again in time.
		if ttl := c.Run().GetMeta().GetTtl().AsDuration(); ttl > time.Minute {
			t.Errorf("it has failed just now: want to be looked at again within a minute, got %v", ttl)
		}
		if fail(tried[0], time.Now().Add(-time.Hour)); len(jobs()) != 1 || jobs()[0] == tried[0] {
			t.Errorf("it has failed an hour ago: want another one than %v, got %v", tried, jobs())
		}
	}

	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Gaps[0].To = new(time.Now()) })
	c.Reconcile()
	if len(jobs()) != 1 {
		t.Errorf("what is at work is left to end: got %v", jobs())
	}
	c.SetStatus(jobs()[0], "{succeeded: 1}")
	c.Reconcile()
	if v := c.ConditionLine("ArchivingHealthy"); v != "True Archiving" || len(jobs()) != 0 {
		t.Errorf("a backup has ended the gap: got %q, %v", v, jobs())
	}
	first := firstBackup(t, c)
	c.SetStatus(first, "{active: 1}")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Gaps[0].To, r.Archive.BackedUp = nil, false })
	c.Reconcile()
	want = "False ArchiveGap The repository holds no backup: nothing can be restored until Job orders-" + first + " has made one"
	if v := c.ConditionLine("ArchivingHealthy"); v != want || len(jobs()) != 0 {
		t.Errorf("the first backup into the repository is on its way: want %q, got %q, %v", want, v, jobs())
	}
}

// TestArchiveGapUnready: the backup after a gap waits for no server but the primary, since a gap comes
// from a lost volume.
func TestArchiveGapUnready(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.Reconcile()
	functionstest.Set(c.Observed["postgresql"], 2.0, "status", "readyReplicas")
	c.ReportCluster(func(r *instance.Cluster) {
		r.Archive.BackedUp = true
		r.Archive.Gaps = []instance.Gap{{First: "000000010000000000000007", Last: "000000010000000000000009"}}
	})
	c.Reconcile()
	if !slices.ContainsFunc(c.ComponentNames(), func(n string) bool { return strings.HasPrefix(n, "backup-gap-") }) {
		t.Errorf("no backup begins while a server is missing: %s", c.ConditionLine("ArchivingHealthy"))
	}
}

// TestRepositoryFull: while WAL is not archived because the volume of the backups is full, a backup
// begins at once, which makes room. There is only one at a time, and the next one begins some time
// after it has ended.
func TestRepositoryFull(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.Reconcile()
	const full = "False RepositoryFull The volume of the backups is full, so what is written is not archived: "
	var jobs []string
	step := func(what, wantVerdict, wantPhase string, want ...string) {
		t.Helper()
		c.Reconcile()
		c.Reconcile() // By then the objects that are no longer desired are deleted.
		jobs = nil
		for _, n := range c.ComponentNames() {
			if strings.HasPrefix(n, "backup-room-") || strings.HasPrefix(n, "backup-gap-") {
				jobs = append(jobs, n)
			}
		}
		if v := c.ConditionLine("ArchivingHealthy"); v != wantVerdict || c.Phase() != wantPhase || !slices.Equal(want, jobs) {
			t.Errorf("%s: want %q, %s, %v, got %q, %s, %v", what, wantVerdict, wantPhase, want, v, c.Phase(), jobs)
		}
	}
	ended := func(job, kind string, at time.Time) {
		c.SetStatus(job, fmt.Sprintf("{conditions: [{type: %s, status: 'True', lastTransitionTime: %q}]}", kind, at.Format(time.RFC3339)))
	}
	first, earlier := firstBackup(t, c), time.Now().Add(-time.Hour)
	c.SetStatus(first, "{active: 1}")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Full, r.Archive.Failing = true, "No space left on device" })
	step("The first backup is on its way", full+"a backup is under way, which makes room", "Degraded")
	c.SetStatus(first, "{succeeded: 1}")
	c.SetStatus("backup-full", "{active: [{name: orders-backup-full-1}]}")
	step("One of the schedule is on its way", full+"a backup is under way, which makes room", "Degraded")
	c.SetStatus("backup-full", "{}")
	step("It is full", full+"Job orders-backup-room-1 makes room", "Degraded", "backup-room-1")
	task := backup.Task{}
	job := functionstest.As[batchv1.Job](t, c.Observed["backup-room-1"])
	if err := json.Unmarshal([]byte(job.Spec.Template.Spec.Containers[0].Env[0].Value), &task); err != nil || task.Action != backup.Backup || !task.Full || task.FullEvery == 0 {
		t.Errorf("want a backup that is full where one is due, got %+v, %v", task, err)
	}
	c.SetStatus("backup-room-1", "{active: 1}")
	step("It is at work", full+"Job orders-backup-room-1 makes room", "Degraded", "backup-room-1")

	c.SetStatus("backup", `{atProvider: {lastFailure: {time: "2026-01-01T00:00:00Z", reason: StoreFull, message: "cannot make a backup: no older backup may expire"}}}`)
	ended("backup-room-1", "Failed", time.Now())
	if ttl := c.Run().GetMeta().GetTtl().AsDuration(); ttl > time.Minute {
		t.Errorf("It has failed just now: want to be looked at again within a minute, got %v", ttl)
	}
	step("It has failed just now", full+"Job orders-backup-room-1 has failed: cannot make a backup: no older backup may expire", "Degraded", "backup-room-1")
	ended("backup-room-1", "Failed", earlier)
	step("It has failed an hour ago", full+"Job orders-backup-room-2 makes room", "Degraded", "backup-room-2")
	ended("backup-room-2", "Complete", time.Now())
	step("It has succeeded, and archiving is tried again soon", full+"Job orders-backup-room-2 has made room, and what waits is archived next", "Degraded", "backup-room-2")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Full, r.Archive.Failing = false, "" })
	step("There is room", "True Archiving", "Running", "backup-room-2")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Full, r.Archive.Failing = true, "No space left on device" })
	step("It is full again at once", full+"Job orders-backup-room-2 has made room, and what waits is archived next", "Degraded", "backup-room-2")
	ended("backup-room-2", "Complete", earlier)
	step("It is full again later", full+"Job orders-backup-room-3 makes room", "Degraded", "backup-room-3")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Full, r.Archive.Failing = false, "" })
	ended("backup-room-3", "Complete", earlier)
	step("There is room for long", "True Archiving", "Running", "backup-room-3")
}

// TestRepositoryFullNow: the backup that makes room does not wait for standbys, does not affect the
// readiness of the claim, and does not run beside another attempt of the backup after a gap.
func TestRepositoryFullNow(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.Reconcile()
	ready := func() bool {
		return c.Reconcile().GetDesired().GetComposite().GetReady() != fnv1.Ready_READY_FALSE
	}
	fill := func(r *instance.Cluster) { r.Archive.Full, r.Archive.Failing = true, "No space left on device" }

	functionstest.Set(c.Observed["postgresql"], 0.0, "status", "readyReplicas")
	c.ReportCluster(fill)
	c.Reconcile()
	if c.Observed["backup-room-1"] != nil {
		t.Error("a backup begins without a primary")
	}
	if got := c.ConditionLine("ArchivingHealthy"); !strings.HasSuffix(got, ": a backup makes room once there is a primary") {
		t.Errorf("what is waited for is not said: %s", got)
	}
	functionstest.Set(c.Observed["postgresql"], 1.0, "status", "readyReplicas")
	c.Reconcile()
	if c.Observed["backup-room-1"] == nil {
		t.Errorf("no backup begins while a standby is not ready: %s", c.ConditionLine("ArchivingHealthy"))
	}

	c.Heal("postgresql")
	c.SetStatus("backup-room-1", "{active: 1}")
	if !ready() {
		t.Fatalf("the claim serves and is not ready: %s", c.Message())
	}
	past := time.Now().Add(-time.Hour).Format(time.RFC3339)
	c.SetStatus("backup-room-1", fmt.Sprintf("{conditions: [{type: Failed, status: 'True', lastTransitionTime: %q}]}", past))
	if !ready() || c.Observed["backup-room-2"] == nil {
		t.Errorf("the claim is not ready while another backup begins: %s, %v", c.Message(), c.ComponentNames())
	}

	c.ReportCluster(func(r *instance.Cluster) {
		r.Archive.Gaps = []instance.Gap{{First: "000000010000000000000003", Last: "000000010000000000000004"}}
	})
	c.SetStatus("backup-room-2", "{active: 1}")
	c.Reconcile()
	gaps := func() (names []string) {
		for _, n := range c.ComponentNames() {
			if strings.HasPrefix(n, "backup-gap-") {
				names = append(names, n)
			}
		}
		return names
	}
	before := gaps()
	if len(before) != 1 {
		t.Fatalf("want a backup after the gap, got %v", before)
	}
	c.SetStatus(before[0], fmt.Sprintf("{conditions: [{type: Failed, status: 'True', lastTransitionTime: %q}]}", past))
	c.Reconcile()
	c.Reconcile()
	if got := gaps(); !slices.Equal(got, before) {
		t.Errorf("another backup begins beside the one that makes room: %v", got)
	}
	c.SetStatus("backup-room-2", fmt.Sprintf("{succeeded: 1, conditions: [{type: Complete, status: 'True', lastTransitionTime: %q}]}", past))
	c.Reconcile()
	c.Reconcile()
	if got := gaps(); len(got) != 1 || got[0] == before[0] || c.Observed["backup-room-3"] != nil {
		t.Errorf("want the backup after the gap again, and no other, got %v", c.ComponentNames())
	}
}

// TestRepositoryRecovers: a pod of the backups' volume that cannot start is replaced once the claim
// is fixed, which a StatefulSet only does with the policy Parallel. That of an existing StatefulSet
// cannot be changed.
func TestRepositoryRecovers(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	policy := func() string {
		return string(functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["repository"]).Spec.PodManagementPolicy)
	}
	if got := policy(); got != "Parallel" {
		t.Errorf("want Parallel, got %s", got)
	}
	functionstest.Set(c.Observed["repository"], "OrderedReady", "spec", "podManagementPolicy")
	c.Reconcile()
	if got := policy(); got != "OrderedReady" {
		t.Errorf("the API server refuses another policy than OrderedReady, got %s", got)
	}
}

// TestBackupSettings: the default store is that of the installation, with a copy of its credentials
// that is bound to the installation's bucket and prefix.
func TestBackupSettings(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settings = functionstest.Parse(t, "{apiVersion: apiextensions.crossplane.io/v1beta1, kind: EnvironmentConfig, metadata: {name: storeplane}, data: {backup: {type: gcs, bucket: b, prefix: p, secretRef: {name: store, namespace: platform, perNamespace: true}, grants: [{of: lost, to: [team]}]}}}")
	s := functionstest.Secret(t, "store-team", map[string]string{"credentials.json": "{}", "note": "for no tenant"})
	functionstest.Fields(s, "metadata")["namespace"] = structpb.NewStringValue("platform")
	c.Others = append(c.Others, s)
	c.Settle()
	if got := c.SecretValue("backup-store", "note"); got != "" {
		t.Errorf("more than credentials of the store is copied: %q", got)
	}
	if got := c.SecretValue("backup-store", "credentials.json"); got != "{}" {
		t.Errorf("want a copy of the credentials, got %q", got)
	}
	const bounds = `{"of":"EnvironmentConfig storeplane","bucket":"b","prefix":"p","reads":["team","lost"]}`
	if got := functionstest.Get(c.Observed["backup-store"], "metadata", "annotations", backup.BoundsAnnotation).GetStringValue(); got != bounds {
		t.Errorf("want the copy bound by %s, got %s", bounds, got)
	}
	mounts := map[string]bool{}
	for _, v := range servers(t, c).Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			mounts[v.Secret.SecretName] = v.Secret.Optional != nil && *v.Secret.Optional
		}
	}
	if optional, ok := mounts["orders-backup-store"]; !ok || !optional {
		t.Errorf("servers mount the copy, and start without it too: got %v", mounts)
	}
	if c.Observed["repository"] != nil {
		t.Errorf("there is a store, and a volume too")
	}
}

// TestBackupSettingsHere: in the namespace that holds the installation's Secrets nothing is copied,
// and the servers and the Backup use the Secret of the settings itself.
func TestBackupSettingsHere(t *testing.T) {
	cases := map[string]struct{ reason, ref, want string }{
		"PerNamespace": {reason: "The one of this namespace, as in any other.", ref: "{name: store, namespace: team, perNamespace: true}", want: "store-team"},
		"Shared":       {reason: "The one for all is right here.", ref: "{name: store, namespace: team, shared: true}", want: "store"},
		"Own":          {reason: "Each namespace's own has one name.", ref: "{name: store}", want: "store"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Serve("backup")
			c.InstallSettings("{backup: {type: gcs, bucket: b, secretRef: " + tc.ref + "}}")
			c.Others = append(c.Others, functionstest.Secret(t, tc.want, map[string]string{"credentials.json": "{}", "note": "for no tenant"}))
			c.Settle()
			mounted := []string{}
			for _, v := range servers(t, c).Spec.Template.Spec.Volumes {
				if v.Secret != nil && strings.HasPrefix(v.Secret.SecretName, "store") {
					mounted = append(mounted, v.Secret.SecretName)
				}
			}
			if diff := cmp.Diff([]string{tc.want}, mounted); diff != "" {
				t.Errorf("%s\nmounted Secrets: -want, +got:\n%s", tc.reason, diff)
			}
			if got := functionstest.Get(c.Observed["backup"], "spec", "forProvider", "destination", "secretRef", "name").GetStringValue(); got != tc.want {
				t.Errorf("%s\nwant the Backup to name Secret %s, got %q", tc.reason, tc.want, got)
			}
			if c.Observed["backup-store"] != nil {
				t.Errorf("%s\nwant no copy of what is in this namespace", tc.reason)
			}
		})
	}
}

// TestBounds: the platform's credentials can only be used for the platform's store, and there only
// to restore backups of the own namespace and of those that granted it.
func TestBounds(t *testing.T) {
	const install = "{apiVersion: apiextensions.crossplane.io/v1beta1, kind: EnvironmentConfig, metadata: {name: storeplane}, data: {backup: {type: s3, bucket: b, prefix: p, endpoint: 'https://all', secretRef: {name: store, namespace: platform, shared: true}, grants: [{of: lost, to: [team]}]}}}"
	platform := functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "k", "admin.kubeconfig": "for no tenant"})
	functionstest.Fields(platform, "metadata")["namespace"] = structpb.NewStringValue("platform")
	copied := functionstest.Secret(t, "other-backup-store", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
	functionstest.Fields(copied, "metadata")["annotations"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		backup.BoundsAnnotation: structpb.NewStringValue(`{"of":"EnvironmentConfig storeplane","bucket":"b","prefix":"p","endpoint":"https://all","reads":["team","lost"]}`),
	}})
	const ways = ", or name credentials of this namespace in destination.secretRef"
	const ask = " may not be restored here with the credentials of EnvironmentConfig storeplane: ask for a RestoreGrant to team in namespace bank, or the platform team for a grant where that one is lost" + ways
	cases := map[string]struct{ reason, spec, want string }{
		"Own":         {reason: "What it has backed up itself.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, name: sales}}"},
		"Granted":     {reason: "What it was granted.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: lost, name: sales}}"},
		"Given":       {reason: "What its owner has granted.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: lab, name: sales}}"},
		"GivenToCopy": {reason: "Also by a copy of the credentials.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b, secretRef: {name: other-backup-store}}, namespace: lab, name: sales}}"},
		"Others":      {reason: "No other namespace's.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: bank, name: sales}}", want: "restoreFrom: backups of namespace bank" + ask},
		"Copy":        {reason: "Nor by a copy of the credentials.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b, secretRef: {name: other-backup-store}}, namespace: bank, name: sales}}", want: "restoreFrom: backups of namespace bank" + ask},
		"Bucket":      {reason: "Nor elsewhere.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: c}, name: sales}}", want: "restoreFrom: destination.bucket is c, and the credentials of EnvironmentConfig storeplane are for b alone: name that one" + ways},
		"Endpoint":    {reason: "No endpoint of its own learns them.", spec: "{size: 1, version: '17', backup: {enabled: true, destination: {type: s3, bucket: b, endpoint: 'https://mine', secretRef: {name: other-backup-store}}}}", want: "backup: destination.endpoint is https://mine, and the credentials of EnvironmentConfig storeplane are for https://all alone: leave it out" + ways},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settings = functionstest.Parse(t, install)
			c.Others = append(c.Others, platform, copied)
			c.Serve("restoregrant")
			c.Add("{apiVersion: backup.example.com/v1, kind: RestoreGrant, metadata: {name: labs, namespace: lab}, spec: {to: [team]}}")
			c.Add("{apiVersion: backup.example.com/v1, kind: RestoreGrant, metadata: {name: banks, namespace: bank}, spec: {to: [vault]}}")
			c.Reconcile()
			c.Reconcile()
			got := ""
			if c.Phase() == "Failed" {
				got = c.Message()
			}
			if got != tc.want {
				t.Fatalf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if tc.want != "" {
				return
			}
			r := instance.Restore{}
			if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
				t.Fatal(err)
			}
			if r.Destination.Prefix != "p" || r.Destination.Endpoint != "https://all" || c.SecretValue("source", "AWS_ACCESS_KEY_ID") != "k" {
				t.Errorf("%s\nwant the platform's place and credentials, got %+v", tc.reason, r.Destination)
			}
			if got := c.SecretValue("source", "admin.kubeconfig"); got != "" {
				t.Errorf("%s\nmore than credentials of the store is copied: %q", tc.reason, got)
			}
			if functionstest.Get(c.Observed["source"], "metadata", "annotations", backup.BoundsAnnotation).GetStringValue() == "" {
				t.Errorf("%s\nwant the copy bound as the platform's credentials are", tc.reason)
			}
		})
	}
}

// TestRestore: a cluster is restored from a backup, reports the progress, and removes the objects
// of the restore afterwards.
func TestRestore(t *testing.T) {
	c := simulate(t, "{size: 2, version: '17', restoreFrom: {destination: {type: volume, bucket: old}, name: sales, systemIdentifier: '7000000000000000002', time: '2020-01-02T03:04:05Z'}}")
	c.Reconcile()
	c.Reconcile()
	r := instance.Restore{}
	if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
		t.Fatal(err)
	}
	want := instance.Restore{
		Destination: backupv1.Destination{Type: "volume", Bucket: "old"}, Namespace: "team", Name: "sales", System: "7000000000000000002", Host: "orders-source.team.svc",
		Time: new(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("what is restored: -want, +got:\n%s", diff)
	}
	if p := patroni(t, c)["bootstrap"].(map[string]any); p["method"] != "restore" {
		t.Errorf("Patroni makes an empty cluster: %v", p)
	}
	c.Heal("postgresql", "source-server")
	c.Report("orders-postgresql-0.json", `{"restore":{"message":"Restoring backup 20200101-000000F"}}`)
	c.Reconcile()
	if c.Phase() != "Restoring" || !strings.Contains(c.Message(), "Restoring backup 20200101-000000F") {
		t.Errorf("want Restoring, got %s, %q", c.Phase(), c.Message())
	}
	c.Report("orders-postgresql-0.json", `{"restore":{"message":"there is no backup","failed":true}}`)
	c.Reconcile()
	if c.Phase() != "Failed" || !strings.Contains(c.Message(), "there is no backup") {
		t.Errorf("want Failed, got %s, %q", c.Phase(), c.Message())
	}
	before := servers(t, c).Spec.Template
	c.Report("orders-postgresql-0.json", `{}`)
	c.Settle()
	if c.Phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.Phase(), c.Message())
	}
	for _, n := range []string{"source", "source-config", "source-server", "source-service", "source-networkpolicy"} {
		if c.Observed[n] != nil {
			t.Errorf("%s is left after the restore", n)
		}
	}
	if diff := cmp.Diff(before, servers(t, c).Spec.Template); diff != "" {
		t.Errorf("the end of a restore replaces servers: -before, +after:\n%s", diff)
	}
	names := slices.Sorted(maps.Keys(c.Observed))
	if !slices.Contains(names, "backup-tls") || slices.Contains(names, "backup-full") {
		t.Errorf("who was restored is not backed up by that, and keeps what it mounts: got %v", names)
	}
}

// TestRestoreBackup: restoreFrom.backupRef reads the location of the backups from a Backup.
func TestRestoreBackup(t *testing.T) {
	const claim = "{size: 1, version: '17', restoreFrom: {backupRef: {name: sales-backup}}}"
	c := simulate(t, claim)
	c.Serve("backup")
	storeSecrets(t, c)
	c.Others = append(c.Others, functionstest.Parse(t, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: sales-backup, namespace: team}, spec: {forProvider: {method: physical,
		source: {type: postgresql, connection: {databaseClusterRef: {name: sales}}}, destination: {type: s3, bucket: b, secretRef: {name: store}}, encryption: {secretRef: {name: key, key: passphrase}}}}}`))
	c.Reconcile()
	r := instance.Restore{}
	if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
		t.Fatal(err)
	}
	want := instance.Restore{Destination: backupv1.Destination{Type: "s3", Bucket: "b"}, Namespace: "team", Name: "sales", Encrypted: true}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("what is restored: -want, +got:\n%s", diff)
	}
	if got := c.SecretValue("source", instance.RestoreKey); got != "secret-passphrase" {
		t.Errorf("the key of the encryption is not there: %q", got)
	}
	for _, v := range servers(t, c).Spec.Template.Spec.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "orders-source" && (v.Secret.Optional == nil || !*v.Secret.Optional) {
			t.Errorf("servers do not start once the source is gone")
		}
	}
	// Once the data is restored, the Backup may be deleted.
	c.Settle()
	c.Others = nil
	c.Settle()
	if c.Phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.Phase(), c.Message())
	}
}

func TestBackupName(t *testing.T) {
	for _, claim := range []string{"a", strings.Repeat("a", 33), strings.Repeat("a", 34), strings.Repeat("a", 40), strings.Repeat("a-", 20)[:39]} {
		got := databasecluster.BackupName(claim)
		if len(got) > 40 || len(validation.IsDNS1123Label(got)) > 0 || !strings.HasSuffix(got, "-backup") {
			t.Errorf("BackupName(%s): got %s, which is no name of a Backup", claim, got)
		}
	}
	if databasecluster.BackupName(strings.Repeat("a", 39)) == databasecluster.BackupName(strings.Repeat("a", 40)) {
		t.Errorf("two claims have one Backup")
	}
}

// TestFullWithGap: if a backup after a gap begins, it also makes room, and no second one is needed.
func TestFullWithGap(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.Reconcile()
	c.ReportCluster(func(r *instance.Cluster) {
		r.Archive.Full, r.Archive.Failing = true, "No space left on device"
		r.Archive.Gaps = []instance.Gap{{First: "000000010000000000000003", Last: "000000010000000000000004"}}
	})
	c.Reconcile()
	if got := c.ConditionLine("ArchivingHealthy"); strings.Contains(got, "once there is a primary") {
		t.Errorf("there is a primary: %s", got)
	}
	c.Reconcile()
	if c.Observed["backup-room-1"] != nil {
		t.Errorf("a second backup begins beside the one after the gap: %v", c.ComponentNames())
	}
}
