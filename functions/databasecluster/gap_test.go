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
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

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

// TestFirstBackupAgain: the first backup is made again some time after it has failed, for as long as the
// repository has none.
func TestFirstBackupAgain(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settle()
	c.Reconcile()
	jobs := func() []string {
		return slices.DeleteFunc(c.ComponentNames(), func(n string) bool { return !strings.HasPrefix(n, "backup-first-") })
	}
	first := jobs()
	if len(first) != 1 {
		t.Fatalf("want one Job that makes the first backup, got %v", first)
	}
	fail := func(name string, ago time.Duration) {
		c.SetStatus(name, fmt.Sprintf("{failed: 1, conditions: [{type: Failed, status: 'True', reason: PodFailurePolicy, lastTransitionTime: %q}]}", time.Now().Add(-ago).Format(time.RFC3339)))
		c.Reconcile()
		c.Reconcile() // By then the objects that are no longer desired are deleted.
	}
	if fail(first[0], 0); !slices.Equal(jobs(), first) {
		t.Errorf("it has failed just now: want %v, got %v", first, jobs())
	}
	if ttl := c.Run().GetMeta().GetTtl().AsDuration(); ttl > time.Minute {
		t.Errorf("it has failed just now: want to be looked at again within a minute, got %v", ttl)
	}
	fail(first[0], time.Hour)
	again := jobs()
	if len(again) != 1 || again[0] != first[0]+"-2" {
		t.Fatalf("it has failed an hour ago: want another attempt than %v, got %v", first, again)
	}
	c.SetStatus(again[0], "{active: 1}")
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.BackedUp = true })
	c.Reconcile()
	if !slices.Contains(jobs(), again[0]) {
		t.Errorf("an attempt that runs is not left to end: %v", jobs())
	}
}

// TestFirstBackupUnready: the first backup and the schedule wait for a replica that is not ready, but not
// for days.
func TestFirstBackupUnready(t *testing.T) {
	for name, tc := range map[string]struct {
		age  time.Duration
		want []string
	}{
		"Young": {age: 5 * time.Minute},
		"Old":   {age: 11 * time.Minute, want: []string{"backup", "backup-first-", "backup-full"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Serve("backup")
			functionstest.Set(c.Claim, time.Now().Add(-tc.age).Format(time.RFC3339), "metadata", "creationTimestamp")
			c.Reconcile()
			for range 20 {
				c.Heal()
				if c.Observed["postgresql"] != nil {
					functionstest.Set(c.Observed["postgresql"], 2.0, "status", "readyReplicas")
				}
				c.Reconcile()
			}
			var got []string
			for _, n := range c.ComponentNames() {
				for _, w := range []string{"backup", "backup-full"} {
					if n == w {
						got = append(got, n)
					}
				}
				if strings.HasPrefix(n, "backup-first-") {
					got = append(got, "backup-first-")
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want, +got:\n%s\n%s", diff, c.ConditionLine("BackupHealthy"))
			}
			if ttl := c.Run().GetMeta().GetTtl().AsDuration(); tc.want == nil && ttl > time.Minute {
				t.Errorf("want to be looked at again within a minute, got %v", ttl)
			}
		})
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
