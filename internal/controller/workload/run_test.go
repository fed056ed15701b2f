package workload

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// job returns a Job that backs up, with conditions.
func job(conditions ...batchv1.JobCondition) batchv1.Job {
	return batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop-1", UID: "job", CreationTimestamp: metav1.NewTime(noon),
			Labels: map[string]string{backupv1.ActionLabel: string(backup.Backup)},
		},
		Status: batchv1.JobStatus{Conditions: conditions},
	}
}

func is(t batchv1.JobConditionType, reason string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(noon.Add(time.Hour))}
}

// pod returns the n-th pod of the Job.
func pod(n int, phase corev1.PodPhase, state *corev1.ContainerStateTerminated) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop-1-" + strconv.Itoa(n), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(n) * time.Minute)),
			OwnerReferences: []metav1.OwnerReference{{UID: "job", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	if state != nil {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: backup.Container, State: corev1.ContainerState{Terminated: state}}}
	}
	return p
}

// tryOut adds a throw-away database to a pod that was killed and started again.
func tryOut(p corev1.Pod) corev1.Pod {
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: ThrowAway, State: corev1.ContainerState{Terminated: exit(0, "Completed", "")},
		LastTerminationState: corev1.ContainerState{Terminated: exit(137, "OOMKilled", "")},
	}}
	return p
}

func exit(code int32, reason, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
}

const (
	good   = `{"action":"backup","finished":"2026-03-01T12:30:00Z","backup":{"id":"x","time":"2026-03-01T12:00:00Z","size":1}}`
	denied = `{"action":"backup","finished":"2026-03-01T12:30:00Z","failure":{"reason":"StoreDenied","message":"403"}}`
	lost   = `{"action":"backup","finished":"2026-03-01T12:20:00Z","failure":{"reason":"StoreUnreachable","message":"no route"}}`
)

// late is long after all Jobs have ended.
var late = noon.AddDate(1, 0, 0)

// TestUnsettled: Jobs and pods are watched separately, so a Job may appear complete before its pod
// does.
func TestUnsettled(t *testing.T) {
	jobs := []batchv1.Job{job(is(batchv1.JobComplete, ""))}
	running, ended := []corev1.Pod{pod(0, corev1.PodRunning, nil)}, []corev1.Pod{pod(0, corev1.PodSucceeded, exit(0, "Completed", good))}
	soon := noon.Add(time.Hour + time.Second)
	if r := Runs(jobs, running, soon)[0]; r.Ended || r.Failure != nil {
		t.Errorf("want the pod to be waited for, got %+v", r)
	}
	if r := Runs(jobs, ended, soon)[0]; !r.Succeeded() {
		t.Errorf("want no wait for a pod that is seen to have ended, got %+v", r)
	}
	if r := Runs(jobs, running, late)[0]; !r.Failed() || r.Failure.Reason != backupv1.ReasonResultMissing {
		t.Errorf("want it waited for no longer, got %+v", r)
	}
}

func TestRuns(t *testing.T) {
	complete, failed := is(batchv1.JobComplete, "CompletionsReached"), is(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded)
	pulling := pod(0, corev1.PodPending, nil)
	pulling.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: backup.Container, Image: "r/backup:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}
	evicted := pod(0, corev1.PodFailed, nil)
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "The node was low on resource: memory"
	overfull := pod(0, corev1.PodFailed, nil)
	overfull.Status.Reason, overfull.Status.Message = "Evicted", `Usage of EmptyDir volume "scratch" exceeds the limit "10Gi". `
	evictedReported, evictedLost := pod(0, corev1.PodFailed, exit(1, "Error", strings.NewReplacer("StoreUnreachable", "Interrupted", "no route", "context canceled").Replace(lost))), pod(0, corev1.PodFailed, exit(1, "Error", lost))
	for _, p := range []*corev1.Pod{&evictedReported, &evictedLost} {
		p.Status.Reason, p.Status.Message = evicted.Status.Reason, evicted.Status.Message
	}

	type want struct {
		Ended, Succeeded, Permanent bool
		Failure                     *backup.Failure
		PodFailure                  string
		Finished                    time.Time
	}
	reported, ended := noon.Add(30*time.Minute), noon.Add(time.Hour)
	cases := map[string]struct {
		reason string
		job    batchv1.Job
		pods   []corev1.Pod
		want   want
	}{
		"New":        {reason: "A Job whose pod is not there yet goes on.", job: job()},
		"Running":    {reason: "A pod that runs has said nothing.", job: job(), pods: []corev1.Pod{pod(0, corev1.PodRunning, nil)}},
		"Good":       {reason: "A report without a failure is a success, at its own time.", job: job(complete), pods: []corev1.Pod{pod(0, corev1.PodSucceeded, exit(0, "Completed", good))}, want: want{Ended: true, Succeeded: true, Finished: reported}},
		"SecondTry":  {reason: "What failed before is forgotten.", job: job(complete), pods: []corev1.Pod{pod(1, corev1.PodSucceeded, exit(0, "Completed", good)), pod(0, corev1.PodFailed, exit(1, "Error", lost))}, want: want{Ended: true, Succeeded: true, Finished: reported}},
		"Permanent":  {reason: "The program's words tell that trying again is of no use.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(42, "Error", denied))}, want: want{Ended: true, Permanent: true, Failure: &backup.Failure{Reason: backup.StoreDenied, Message: "403"}, Finished: reported}},
		"LastWords":  {reason: "The last pod's words are the Job's.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(1, "Error", lost)), pod(1, corev1.PodFailed, exit(42, "Error", denied))}, want: want{Ended: true, Permanent: true, Failure: &backup.Failure{Reason: backup.StoreDenied, Message: "403"}, Finished: reported}},
		"LastKilled": {reason: "A last pod without words has failed in its own way.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(1, "Error", lost)), pod(1, corev1.PodFailed, exit(137, "OOMKilled", ""))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonOutOfMemory, Message: "the pod ran out of memory: raise resources.limits.memory"}, Finished: noon.Add(20 * time.Minute)}},
		"Interim":    {reason: "An attempt that failed is told while the Job goes on.", job: job(), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(1, "Error", lost)), pod(1, corev1.PodRunning, nil)}, want: want{Failure: &backup.Failure{Reason: backup.StoreUnreachable, Message: "no route"}}},
		"Ending":     {reason: "A pod that succeeded has overcome the attempt before, though its Job does not say so yet.", job: job(), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(1, "Error", lost)), pod(1, corev1.PodSucceeded, exit(0, "Completed", good))}},
		"ThrowAway": {
			reason: "Who feeds a throw-away database that is killed only sees that it is gone.", job: job(failed), pods: []corev1.Pod{tryOut(pod(0, corev1.PodFailed, exit(1, "Error", lost)))},
			want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonOutOfMemory, Message: "the throw-away database ran out of memory: raise resources.limits.memory"}, Finished: noon.Add(20 * time.Minute)},
		},
		"OutOfMemory":     {reason: "The kernel's word.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(137, "OOMKilled", ""))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonOutOfMemory, Message: "the pod ran out of memory: raise resources.limits.memory"}, Finished: ended}},
		"Evicted":         {reason: "The kubelet's word.", job: job(failed), pods: []corev1.Pod{evicted}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonEvicted, Message: "the pod was evicted: The node was low on resource: memory"}, Finished: ended}},
		"Overfull":        {reason: "For want of room people must do something.", job: job(failed), pods: []corev1.Pod{overfull}, want: want{Ended: true, Failure: &backup.Failure{Reason: backup.NoSpace, Message: "the throw-away database needs more room than it may have on the node's disk: set verification.storage, or raise resources.limits.ephemeral-storage: Usage of EmptyDir volume \"scratch\" exceeds the limit \"10Gi\". "}, Finished: ended}},
		"EvictedReported": {reason: "A pod that was asked to stop does not know why.", job: job(failed), pods: []corev1.Pod{evictedReported}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonEvicted, Message: "the pod was evicted: The node was low on resource: memory"}, Finished: noon.Add(20 * time.Minute)}},
		"EvictedToo":      {reason: "What it knows of before says more.", job: job(failed), pods: []corev1.Pod{evictedLost}, want: want{Ended: true, Failure: &backup.Failure{Reason: backup.StoreUnreachable, Message: "no route"}, Finished: noon.Add(20 * time.Minute)}},
		"Killed":          {reason: "A pod that was killed says nothing.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(137, "Error", ""))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod was killed and left no report: exit code 137"}, Finished: ended}},
		"Gone":            {reason: "A pod that is gone says nothing either.", job: job(failed), want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod is gone and left no report"}, Finished: ended}},
		"Deadline":        {reason: "Nothing hangs for ever.", job: job(is(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonDeadlineExceeded, Message: "the Job was not done before its deadline"}, Finished: ended}},
		"NotStarted":      {reason: "Why it was not done is known.", job: job(is(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded)), pods: []corev1.Pod{pulling}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonPodNotStarted, Message: "the pod cannot pull image r/backup:1: not found"}, Finished: ended}},
		"PodFailure":      {reason: "A pod that does not come up is reported while the Job goes on.", job: job(), pods: []corev1.Pod{pulling}, want: want{PodFailure: "cannot pull image r/backup:1: not found"}},
		"Crashed":         {reason: "What a program crashes at may be the backup.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(139, "Error", ""))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonCrashed, Message: "the pod crashed and left no report: exit code 139"}, Finished: ended}},
		"ResultMissing":   {reason: "An exit code alone is no success.", job: job(complete), pods: []corev1.Pod{pod(0, corev1.PodSucceeded, exit(0, "Completed", ""))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}, Finished: ended}},
		"NoPod":           {reason: "Nor is a Job whose pods are gone.", job: job(complete), want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}, Finished: ended}},
		"Garbage":         {reason: "What is no report is none.", job: job(complete), pods: []corev1.Pod{pod(0, corev1.PodSucceeded, exit(0, "Completed", "panic: x"))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}, Finished: ended}},
		"OtherAction":     {reason: "The report of something else is none.", job: job(complete), pods: []corev1.Pod{pod(0, corev1.PodSucceeded, exit(0, "Completed", `{"action":"check"}`))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}, Finished: ended}},
		"KilledAfter":     {reason: "A report of success and an exit code of failure are a failure.", job: job(failed), pods: []corev1.Pod{pod(0, corev1.PodFailed, exit(137, "Error", good))}, want: want{Ended: true, Failure: &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod was stopped before its end"}, Finished: reported}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runs := Runs([]batchv1.Job{tc.job}, tc.pods, late)
			if len(runs) != 1 {
				t.Fatalf("%s\nwant one run, got %d", tc.reason, len(runs))
			}
			r := runs[0]
			got := want{Ended: r.Ended, Succeeded: r.Succeeded(), Permanent: r.Permanent(), Failure: r.Failure, PodFailure: r.PodFailure, Finished: r.Finished}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunsOrder(t *testing.T) {
	jobs := []batchv1.Job{job(), job(is(batchv1.JobComplete, "")), job(is(batchv1.JobComplete, "")), job(is(batchv1.JobComplete, ""))}
	for i, n := range []string{"active", "late", "early", "deleted"} {
		jobs[i].Name, jobs[i].UID = n, types.UID(n)
	}
	jobs[1].Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(2 * time.Hour))
	jobs[3].DeletionTimestamp = new(metav1.NewTime(noon))
	jobs[1].Annotations = map[string]string{DigestAnnotation: "d", ValueAnnotation: "v", AttemptAnnotation: "3", batchv1.CronJobScheduledTimestampAnnotation: "2026-03-01T12:00:00Z"}
	jobs[1].OwnerReferences = []metav1.OwnerReference{{UID: "owner", Controller: new(true)}}

	runs := Runs(jobs, nil, late)
	var got []string
	for _, r := range runs {
		got = append(got, r.Job)
	}
	if diff := cmp.Diff([]string{"early", "late", "active"}, got); diff != "" {
		t.Errorf("Runs are in the order of their ends, and what is being deleted is none.\n-want, +got:\n%s", diff)
	}
	r := runs[1]
	if r.Digest != "d" || r.Value != "v" || r.Attempt != 3 || !r.Scheduled.Equal(noon) || r.Owner != "owner" {
		t.Errorf("The annotations of a Job are its run's: %+v", r)
	}
}

func TestFlavourOf(t *testing.T) {
	cases := map[string]struct {
		reason   string
		engine   backupv1.Engine
		versions []string
		want     Flavour
		err      string
	}{
		"Default":  {reason: "The default is the version that claims have.", engine: backupv1.PostgreSQL, versions: []string{""}, want: Flavour{Tag: "postgresql-17", ID: 26}},
		"Own":      {reason: "A server is read with its own tools.", engine: backupv1.PostgreSQL, versions: []string{"15.4.0"}, want: Flavour{Tag: "postgresql-15", ID: 26}},
		"Older":    {reason: "An older one with the oldest there are.", engine: backupv1.PostgreSQL, versions: []string{"14"}, want: Flavour{Tag: "postgresql-15", ID: 26}},
		"Between":  {reason: "And one that there are none for with newer ones.", engine: backupv1.PostgreSQL, versions: []string{"16"}, want: Flavour{Tag: "postgresql-17", ID: 26}},
		"Newest":   {reason: "What was written by newer tools is read by them.", engine: backupv1.PostgreSQL, versions: []string{"15", "18.1"}, want: Flavour{Tag: "postgresql-18", ID: 26}},
		"TooNew":   {reason: "Older tools refuse a newer server.", engine: backupv1.PostgreSQL, versions: []string{"19"}, err: "cannot back up PostgreSQL 19: the newest version there are tools for is 18"},
		"MySQL":    {reason: "The others have one image each.", engine: backupv1.MySQL, want: Flavour{Tag: "mysql", ID: 10001}},
		"MongoDB":  {reason: "The others have one image each.", engine: backupv1.MongoDB, versions: []string{"x"}, want: Flavour{Tag: "mongodb", ID: 10001}},
		"NoNumber": {reason: "The definition lets none of these through.", engine: backupv1.PostgreSQL, versions: []string{"x"}, err: `cannot read version "x": it is not like 17, 17.2 or 17.2.0`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := FlavourOf(tc.engine, tc.versions...)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff(tc.err, text); diff != "" {
				t.Errorf("%s\n-want error, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
