package databasecluster_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

const archived = `{engine: mysql, version: '9.7', size: 1,
  backup: {enabled: true, method: physical, schedule: '0 4 * * *',
  destination: {type: s3, bucket: b, prefix: team, endpoint: 'https://store.example.com', secretRef: {name: store}},
  encryption: {secretRef: {name: key, key: passphrase}}}}`

// TestLogArchive: a pod of its own archives the binary logs beside copies of the servers, once there is a user as which
// it connects. The servers' own pods see nothing of the store.
func TestLogArchive(t *testing.T) {
	c := simulate(t, archived)
	c.Serve("backup")
	storeSecrets(t, c)
	c.Reconcile()
	if c.Observed["archive"] != nil {
		t.Error("binary logs are archived before there is a database")
	}
	c.Settle()
	b := functionstest.As[backupv1.Backup](t, c.Observed["backup"])
	if got := b.Spec.ForProvider.Method; got != backupv1.Physical {
		t.Errorf("the Backup has method %q", got)
	}
	pod := functionstest.As[appsv1.Deployment](t, c.Observed["archive"]).Spec.Template.Spec
	mounts := map[string]string{}
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name == m.Name && v.Secret != nil {
				mounts[m.MountPath] = v.Secret.SecretName
			}
		}
	}
	if diff := cmp.Diff(map[string]string{backup.SourceDir: "orders-dumper", backup.StoreDir: "store", backup.KeyDir: "key"}, mounts); diff != "" {
		t.Errorf("Secrets of the pod: -want, +got:\n%s", diff)
	}
	task := backup.Task{}
	for _, e := range pod.Containers[0].Env {
		if e.Name == backup.TaskVariable {
			if err := json.Unmarshal([]byte(e.Value), &task); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := backup.Task{
		Action: backup.Backup, Method: backup.BinaryLog, Namespace: "team", Name: "orders-backup", Database: backup.Database{Engine: backupv1.MySQL}, Encrypted: true,
		Destination: backupv1.Destination{Type: "s3", Bucket: "b", Prefix: "team", Endpoint: "https://store.example.com"},
	}
	if diff := cmp.Diff(want, task); diff != "" {
		t.Errorf("its task: -want, +got:\n%s", diff)
	}
	role := functionstest.As[rbacv1.Role](t, c.Observed["archive-role"])
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"orders-mysql-archive"}, Verbs: []string{"patch"}}}, role.Rules); diff != "" {
		t.Errorf("its rights: -want, +got:\n%s", diff)
	}
	set := functionstest.As[appsv1.StatefulSet](t, c.Observed["mysql"])
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.Secret != nil && (v.Secret.SecretName == "store" || v.Secret.SecretName == "key") {
			t.Errorf("the servers mount Secret %s", v.Secret.SecretName)
		}
	}

	c.Edit(true, "hibernated")
	c.Reconcile()
	if n := *functionstest.As[appsv1.Deployment](t, c.Observed["archive"]).Spec.Replicas; n != 1 {
		t.Error("the last writes of a database that is being hibernated are not archived")
	}
	c.Settle()
	if n := *functionstest.As[appsv1.Deployment](t, c.Observed["archive"]).Spec.Replicas; n != 0 {
		t.Errorf("%d pods archive the binary logs of a database that is hibernated", n)
	}
	c.Edit(false, "hibernated")
	got := functionstest.RefusedWhileRunning(t, c, func() { c.Edit("logical", "backup", "method") })
	if want := "backup.method: Backup orders-backup has method physical, which cannot change: delete it, and it is created again with method logical"; !strings.Contains(got, want) {
		t.Errorf("another method: want %q, got %q", want, got)
	}
	delete(c.Observed, "backup")
	c.Settle()
	for _, name := range []string{"archive", "archive-account", "archive-role", "archive-rolebinding", "archive-networkpolicy", "archive-reports"} {
		if c.Observed[name] != nil {
			t.Errorf("%s is left after the method was changed", name)
		}
	}
}

// TestLogArchiveReported: what the primary's instance manager reports of the archive is in a condition, and a gap is
// ended by another backup.
func TestLogArchiveReported(t *testing.T) {
	c := simulate(t, archived)
	c.Serve("backup")
	storeSecrets(t, c)
	c.Settle()
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available}], atProvider: {catalogTime: "2026-01-01T00:00:00Z", count: 1, lastSuccessfulTime: "2026-01-01T00:00:00Z"}}`)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const lost = "8d1e5c5a-3c3f-4b39-9d56-3f3a1b0c7e11:5-6"
	for _, tc := range []struct {
		reason  string
		archive *instance.Archive
		want    string
		runs    string
	}{
		{reason: "Nothing is known yet.", want: "False Pending Nothing has been archived yet"},
		{reason: "All is archived.", archive: &instance.Archive{Recoverable: &at, BackedUp: true}, want: "True Archiving"},
		{
			reason: "The store is away.", archive: &instance.Archive{Recoverable: &at, BackedUp: true, Failing: "cannot archive binary logs: the store is away"},
			want: "False Failing What is written is not archived: cannot archive binary logs: the store is away",
		},
		{
			reason: "Binary logs were lost.", archive: &instance.Archive{Recoverable: &at, BackedUp: true, Gaps: []instance.Gap{{First: lost, Last: lost, From: &at}}}, runs: "gap-",
			want: "False ArchiveGap Transactions " + lost + " are not archived, and cannot be any more: what was written after them can be restored once a backup is complete, which starts automatically",
		},
		{
			reason: "A backup has them.", archive: &instance.Archive{Recoverable: &at, BackedUp: true, Gaps: []instance.Gap{{First: lost, Last: lost, From: &at, To: &at}}},
			want: "True Archiving",
		},
		{
			reason: "Another history has begun.", archive: &instance.Archive{System: "two"}, runs: "of-",
			want: "False ArchiveGap Another history of this database has begun, and nothing of it can be restored until a backup is complete, which starts automatically: if it fails, annotate the Backup with backup.example.com/run-now",
		},
		{
			reason: "The store has lost all.", archive: &instance.Archive{System: "two", Gaps: []instance.Gap{{First: lost, Last: lost}}}, runs: "gap-",
			want: "False ArchiveGap The store holds no backup: nothing can be restored until one is complete, which starts automatically",
		},
		{
			reason: "The primary writes too fast.", archive: &instance.Archive{Recoverable: &at, BackedUp: true, Failing: "the archive is behind", Archiving: true},
			want: "False Failing What is written is archived, and may be lost to a restore: the archive is behind",
		},
	} {
		c.ReportCluster(func(r *instance.Cluster) { r.Archive = tc.archive })
		c.Reconcile()
		ttl := c.Reconcile().GetMeta().GetTtl().AsDuration()
		// What the time alone decides is composed again each minute.
		if tc.runs != "" && (ttl == 0 || ttl > time.Minute) {
			t.Errorf("%s\nthe claim is composed again after %s", tc.reason, ttl)
		}
		if got := c.ConditionLine("ArchivingHealthy"); got != tc.want {
			t.Errorf("%s\nArchivingHealthy: want %s, got %s", tc.reason, tc.want, got)
		}
		run := functionstest.As[backupv1.Backup](t, c.Observed["backup"]).Annotations[backupv1.RunNowAnnotation]
		if (run == "") != (tc.runs == "") || !strings.HasPrefix(run, tc.runs) {
			t.Errorf("%s\nthe Backup is asked to run: %q", tc.reason, run)
		}
	}
}

// TestLogArchiveRefused: methods that an engine does not have, or not at a place, are refused.
func TestLogArchiveRefused(t *testing.T) {
	for spec, want := range map[string]string{
		"engine: mysql, version: '9.7', size: 1, backup: {enabled: true, method: physical, destination: {type: volume, bucket: disk}}": "backup.method physical needs an object store with engine mysql: a volume claim is mounted on one node, and binary logs come from all: name another backup.destination, or leave the method out",
		"version: '17', size: 1, backup: {enabled: true, method: logical}":                                                             "backup.method logical is not available with engine postgresql, whose backups are physical: leave it out, and create a Backup of method logical beside the claim",
		"version: '17', size: 1, backup: {enabled: true, method: physical}":                                                            "",
	} {
		if got := functionstest.Refused(t, functionstest.DatabaseCluster("{"+spec+"}")); got != want {
			t.Errorf("%s: want %q, got %q", spec, want, got)
		}
	}
}
