package databasecluster_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
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
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "False", reason: BackupOverdue, message: "The newest good backup is older than two periods of the schedule"}], atProvider: {}}`)
	step("None has run", "False BackupFailed The newest good backup is older than two periods of the schedule", "True Archiving", "Running")
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
