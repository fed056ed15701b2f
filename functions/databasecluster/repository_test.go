package databasecluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

// repositorySize returns the size with which the volume of the backups is created.
func repositorySize(t *testing.T, c *crossplane) string {
	t.Helper()
	set := functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["repository"])
	size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
	return size.String()
}

// TestRepositorySize: the default volume can hold the backups of the default schedule and
// retention, and a claim whose new volume cannot hold its backups is refused.
func TestRepositorySize(t *testing.T) {
	spec := func(backup string) string {
		return "{size: 1, version: '17', storageSize: 100Gi, backup: {enabled: true, " + backup + "}}"
	}
	cases := map[string]struct {
		reason, backup, want, refusal string
	}{
		"Default":      {reason: "Five times the database's.", backup: "retention: 30d", want: "500Gi"},
		"Stored":       {reason: "The API server fills in the schedule.", backup: "schedule: 0 2 * * *, retention: 30d", want: "500Gi"},
		"Hourly":       {reason: "More incremental ones hold no more changes.", backup: "schedule: '@hourly'", want: "500Gi"},
		"Size":         {reason: "The claim's own.", backup: "storageSize: 1Ti", want: "1Ti"},
		"SizeIsEnough": {reason: "Less where less is kept.", backup: "retention: 7d, storageSize: 250Gi", want: "250Gi"},
		"SizeTooSmall": {reason: "Too small for what is kept.", backup: "retention: 30d, storageSize: 200Gi",
			refusal: "backup.storageSize 200Gi cannot hold the backups of 30d at a full one each 7 days: half-full volumes of 100Gi need 378Gi: raise backup.storageSize"},
		"AllFull": {reason: "With an incremental schedule the other is of full backups.", backup: "schedule: 0 2 * * *, incrementalSchedule: '@hourly'",
			refusal: "backup.storageSize 500Gi cannot hold the backups of 30d at a full one each day: half-full volumes of 100Gi need 1716Gi: raise"},
		"Year": {reason: "The default volume is none for a year.", backup: "retention: 12m", refusal: "backup.storageSize 500Gi cannot hold the backups of 12m"},
		"Rare": {reason: "A schedule of its own is followed.", backup: "schedule: '@monthly'", want: "500Gi"},
		"Word": {reason: "The API server is not everywhere.", backup: "storageSize: much", refusal: `backup.storageSize must be a quantity above zero, like 500Gi: is "much"`},
		"Other": {reason: "Another one's volume has its own size.", backup: "storageSize: 1Ti, destination: {type: volume, bucket: mine}",
			refusal: "backup.storageSize is of the volume claim that Storeplane creates: leave it out, or backup.destination"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.refusal != "" {
				if got := functionstest.Refused(t, functionstest.DatabaseCluster(spec(tc.backup))); !strings.Contains(got, tc.refusal) {
					t.Errorf("%s\nwant %q, got %q", tc.reason, tc.refusal, got)
				}
				return
			}
			c := simulate(t, spec(tc.backup))
			c.Settle()
			if got := repositorySize(t, c); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
			if got := desiredOf(t, c).Repository; got == nil || got.Storage != tc.want {
				t.Errorf("the instance managers read %+v", got)
			}
		})
	}
}

// TestRepositoryGrows: an existing volume keeps its size until the claim sets a larger one, and
// never blocks another change.
func TestRepositoryGrows(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available}, {type: Verified, status: "True", reason: Verified}]}`)
	// An existing volume of twice the size of the database's.
	template := functionstest.Get(c.Observed["repository"], "spec", "volumeClaimTemplates").GetListValue().GetValues()[0].GetStructValue()
	functionstest.Set(template, "40Gi", "spec", "resources", "requests", "storage")
	once := desiredOf(t, c)
	once.Repository = nil
	b, err := json.Marshal(once)
	if err != nil {
		t.Fatal(err)
	}
	functionstest.Set(c.Observed["config"], string(b), "data", instance.DesiredKey)
	step := func(what, wantSize, wantBackup string) {
		t.Helper()
		c.Settle()
		if got := desiredOf(t, c).Repository.Storage; got != wantSize {
			t.Errorf("%s: want %s, got %s", what, wantSize, got)
		}
		if got := repositorySize(t, c); got != "40Gi" {
			t.Errorf("%s: a template cannot be changed, got %s", what, got)
		}
		if got := c.ConditionLine("BackupHealthy"); !strings.HasPrefix(got, wantBackup) {
			t.Errorf("%s: want %q, got %q", what, wantBackup, got)
		}
	}
	const small = "True RepositoryTooSmall A volume of %s cannot hold the backups of 30d at a full one each 7 days: half-full volumes of %s need %s: raise backup.storageSize"
	step("An old one", "40Gi", fmt.Sprintf(small, "40Gi", "20Gi", "76Gi"))
	c.Edit("100Gi", "backup", "storageSize")
	step("It grows", "100Gi", "True StoredInCluster")
	c.Edit("50Gi", "storageSize")
	step("The database grows, whatever there is for its backups", "100Gi", fmt.Sprintf(small, "100Gi", "50Gi", "189Gi"))
	shrink := func() { c.Edit("90Gi", "backup", "storageSize") }
	if got, want := functionstest.RefusedWhileRunning(t, c, shrink), "backup.storageSize may not shrink: 100Gi → 90Gi"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// TestFullEvery: without a schedule of incremental backups a full one is made each week, and the
// first one is always full.
func TestFullEvery(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	task := func(pod corev1.PodTemplateSpec) backup.Task {
		t.Helper()
		out := backup.Task{}
		if err := json.Unmarshal([]byte(pod.Spec.Containers[0].Env[0].Value), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := task(functionstest.As[batchv1.CronJob](t, c.Observed["backup-full"]).Spec.JobTemplate.Spec.Template); !got.Full || got.FullEvery != 7 {
		t.Errorf("want a full backup each 7 days, got %t, %d", got.Full, got.FullEvery)
	}
	first := slices.IndexFunc(c.ComponentNames(), func(n string) bool { return strings.HasPrefix(n, "backup-first-") })
	if first < 0 {
		t.Fatal("there is no first backup")
	}
	if got := task(functionstest.As[batchv1.Job](t, c.Observed[c.ComponentNames()[first]]).Spec.Template); !got.Full || got.FullEvery != 0 {
		t.Errorf("want a full backup first, got %t, %d", got.Full, got.FullEvery)
	}
}

// TestRepositoryMonitoring: Prometheus scrapes how full the volume is.
func TestRepositoryMonitoring(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("podmonitor")
	c.Settle()
	want := metav1.LabelSelector{
		MatchLabels:      map[string]string{"app.kubernetes.io/instance": "orders"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app.kubernetes.io/component", Operator: "In", Values: []string{"postgresql", "repository"}}},
	}
	if diff := cmp.Diff(want, functionstest.As[monitoringv1.PodMonitor](t, c.Observed["podmonitor"]).Spec.Selector); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	container := functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["repository"]).Spec.Template.Spec.Containers[0]
	if !slices.Contains(container.Command, "--metrics=:8009") || !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == "metrics" && p.ContainerPort == 8009 }) {
		t.Errorf("the server of the volume exports nothing: %v, %v", container.Command, container.Ports)
	}
	c.Edit(false, "monitoring", "enabled")
	c.Reconcile()
	if container := functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["repository"]).Spec.Template.Spec.Containers[0]; len(container.Ports) != 1 || len(container.Command) != 2 {
		t.Errorf("nothing is exported where nothing is wanted: %v", container.Command)
	}
}

// TestRepositoryRefusal: StorageHealthy shows why the volume of the backups cannot grow.
func TestRepositoryRefusal(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	c.ReportCluster(func(r *instance.Cluster) { r.Repository = "cannot grow to 500Gi: no" })
	c.Reconcile()
	if got, want := c.ConditionLine("StorageHealthy"), "False VolumeResizeFailed Volumes do not have their size: that of the backups cannot grow to 500Gi: no"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
