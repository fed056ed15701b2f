package workload

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// Exit codes of containers that a signal has ended.
const (
	sigkill = 137
	sigterm = 143
)

// Run is a Job and what became of it.
type Run struct {
	Job    string
	UID    types.UID
	Action backup.Action

	Created, Finished time.Time

	// Scheduled is the time at which a CronJob was due to start the Job, or zero if none started
	// it.
	Scheduled time.Time

	// Ended is false while the Job runs, or its report is still awaited.
	Ended bool

	// Report is that of the last pod that wrote one. While Ended is false it may be that of an
	// attempt that failed.
	Report *backup.Report

	// Failure is that of the Job, or of its last attempt while Ended is false.
	Failure *backup.Failure

	// Silent is true if the run has ended, and its pods are gone with what they reported: what became
	// of it is not known any more, and Failure is only that.
	Silent bool

	// PodFailure is why a pod does not start, in words that follow "the pod", or "".
	PodFailure string

	// Digest, Value and Attempt are the Job's annotations.
	Digest, Value string
	Attempt       int

	// Owner is the UID of the Job's controller.
	Owner types.UID
}

// Succeeded reports whether the run has ended without a failure.
func (r *Run) Succeeded() bool { return r.Ended && r.Failure == nil }

// Failed reports whether the run has ended with a failure.
func (r *Run) Failed() bool { return r.Ended && r.Failure != nil }

// Permanent reports whether the run has failed for a reason that a retry does not fix.
func (r *Run) Permanent() bool { return r.Failed() && r.Failure.Reason.Permanent() }

// settled is how long after the end of a Job the end of its pod may be observed: Jobs and pods are
// watched separately.
const settled = 5 * time.Second

// Runs returns the Jobs and what became of them until now, in the order in which they ended. Those
// that have not ended are last, and those that are being deleted are left out.
func Runs(jobs []batchv1.Job, pods []corev1.Pod, now time.Time) []Run {
	byJob := map[types.UID][]*corev1.Pod{}
	for i := range pods {
		if c := metav1.GetControllerOf(&pods[i]); c != nil {
			byJob[c.UID] = append(byJob[c.UID], &pods[i])
		}
	}
	out := make([]Run, 0, len(jobs))
	for i := range jobs {
		if jobs[i].DeletionTimestamp == nil {
			out = append(out, runOf(&jobs[i], byJob[jobs[i].UID], now))
		}
	}
	slices.SortFunc(out, func(a, b Run) int {
		if a.Ended != b.Ended {
			if a.Ended {
				return -1
			}
			return 1
		}
		return cmp.Or(a.Finished.Compare(b.Finished), a.Created.Compare(b.Created), cmp.Compare(a.Job, b.Job))
	})
	return out
}

func runOf(j *batchv1.Job, pods []*corev1.Pod, now time.Time) Run {
	r := Run{
		Job:     j.Name,
		UID:     j.UID,
		Action:  backup.Action(j.Labels[backupv1.ActionLabel]),
		Created: j.CreationTimestamp.Time,
		Digest:  j.Annotations[DigestAnnotation],
		Value:   j.Annotations[ValueAnnotation],
	}
	if n, err := strconv.Atoi(j.Annotations[AttemptAnnotation]); err == nil {
		r.Attempt = n
	}
	if t, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation]); err == nil {
		r.Scheduled = t
	}
	if c := metav1.GetControllerOf(j); c != nil {
		r.Owner = c.UID
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	r.Report = lastReport(r.Action, pods)

	switch end := ending(j); {
	case end == nil:
		r.PodFailure = startFailure(pods)
		r.Failure = interim(r.Action, pods)
	case end.Type == batchv1.JobComplete && r.Report == nil && now.Sub(end.LastTransitionTime.Time) < settled:
		// The report of its pod may not have been observed yet.
	case end.Type == batchv1.JobComplete:
		r.end(end)
		if r.Report == nil {
			// Without a report it is not known that the action was done, so it does not count as a
			// success.
			r.Silent = len(pods) == 0
			r.Failure = &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}
			break
		}
		r.Failure = r.Report.Failure
	default:
		r.end(end)
		r.Silent = len(pods) == 0 && end.Reason != batchv1.JobReasonDeadlineExceeded
		r.Failure = failureOf(r.Action, end, pods)
	}
	return r
}

func (r *Run) end(c *batchv1.JobCondition) {
	r.Ended = true
	r.Finished = c.LastTransitionTime.Time
	if r.Report != nil && !r.Report.Finished.IsZero() {
		r.Finished = r.Report.Finished
	}
}

// ending returns the condition by which a Job has ended, or nil.
func ending(j *batchv1.Job) *batchv1.JobCondition {
	for i, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &j.Status.Conditions[i]
		}
	}
	return nil
}

// lastReport returns the newest report for the action among a Job's pods, or nil.
func lastReport(a backup.Action, pods []*corev1.Pod) *backup.Report {
	for _, p := range slices.Backward(pods) {
		if r := reported(a, p); r != nil {
			return r
		}
	}
	return nil
}

// reported returns the report of a pod for an action, or nil.
func reported(a backup.Action, p *corev1.Pod) *backup.Report {
	t := terminated(p)
	if t == nil {
		return nil
	}
	r := &backup.Report{}
	if err := json.Unmarshal([]byte(t.Message), r); err != nil || r.Action != a {
		return nil
	}
	if r.Failure == nil && t.ExitCode != 0 {
		// The pod reported success and was killed before it ended.
		r.Failure = &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod was stopped before its end"}
	}
	return r
}

func terminated(p *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, s := range p.Status.ContainerStatuses {
		if s.Name == backup.Container || len(p.Status.ContainerStatuses) == 1 {
			return s.State.Terminated
		}
	}
	return nil
}

func startFailure(pods []*corev1.Pod) string {
	for _, p := range slices.Backward(pods) {
		if f := podfailure.Of(p); f != nil {
			return f.String()
		}
	}
	return ""
}

// interim returns why the last attempt of a Job that has not ended failed, or nil if it did not
// fail.
func interim(a backup.Action, pods []*corev1.Pod) *backup.Failure {
	for _, p := range slices.Backward(pods) {
		switch p.Status.Phase {
		case corev1.PodSucceeded:
			return nil
		case corev1.PodFailed:
			return reportedFailure(a, p)
		case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		}
	}
	return nil
}

// reportedFailure returns the failure that a failed pod reported, or that its status shows. A pod
// that was evicted only reports that it was stopped: the reason is in its status, from the kubelet.
func reportedFailure(a backup.Action, p *corev1.Pod) *backup.Failure {
	if ranOut(p) {
		return &backup.Failure{Reason: backupv1.ReasonOutOfMemory, Message: "the throw-away database ran out of memory: raise resources.limits.memory"}
	}
	if isOverfull(p) {
		return &backup.Failure{Reason: backup.NoSpace, Message: "the throw-away database needs more room than it may have on the node's disk: set verification.storage, or raise resources.limits.ephemeral-storage: " + p.Status.Message}
	}
	r := reported(a, p)
	if r == nil || r.Failure == nil || isEvicted(p) && r.Failure.Reason == backup.Interrupted {
		return unreportedFailure(p)
	}
	return r.Failure
}

// ranOut reports whether the throw-away server was killed because it ran out of memory. The
// container beside it can only report that the server is gone.
func ranOut(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		t := cmp.Or(s.LastTerminationState.Terminated, s.State.Terminated)
		return s.Name == ThrowAway && t != nil && t.Reason == "OOMKilled"
	})
}

// isOverfull reports whether the throw-away server has exceeded its limit of the node's disk, which
// the kubelet reports only in a message.
func isOverfull(p *corev1.Pod) bool {
	return isEvicted(p) && strings.Contains(p.Status.Message, `volume "`+scratch+`"`)
}

func isEvicted(p *corev1.Pod) bool { return p.Status.Reason == "Evicted" }

// failureOf returns the failure of a Job that failed. Its last pod shows most about the cause.
func failureOf(a backup.Action, end *batchv1.JobCondition, pods []*corev1.Pod) *backup.Failure {
	if end.Reason == batchv1.JobReasonDeadlineExceeded {
		if words := startFailure(pods); words != "" {
			return &backup.Failure{Reason: backupv1.ReasonPodNotStarted, Message: "the pod " + words}
		}
		return &backup.Failure{Reason: backupv1.ReasonDeadlineExceeded, Message: "the Job was not done before its deadline"}
	}
	if len(pods) == 0 {
		return &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod is gone and left no report"}
	}
	return reportedFailure(a, pods[len(pods)-1])
}

// unreportedFailure returns the failure of a pod that left no report.
func unreportedFailure(p *corev1.Pod) *backup.Failure {
	if isEvicted(p) {
		return &backup.Failure{Reason: backupv1.ReasonEvicted, Message: "the pod was evicted: " + p.Status.Message}
	}
	t := terminated(p)
	switch {
	case t == nil:
		return &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod was stopped and left no report"}
	case t.Reason == "OOMKilled":
		return &backup.Failure{Reason: backupv1.ReasonOutOfMemory, Message: "the pod ran out of memory: raise resources.limits.memory"}
	case t.ExitCode == 0:
		return &backup.Failure{Reason: backupv1.ReasonResultMissing, Message: "the pod ended without a report"}
	}
	// SIGKILL and SIGTERM are sent by the node, so they are not a crash.
	if t.ExitCode != sigkill && t.ExitCode != sigterm {
		return &backup.Failure{Reason: backupv1.ReasonCrashed, Message: "the pod crashed and left no report: exit code " + strconv.Itoa(int(t.ExitCode))}
	}
	return &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod was killed and left no report: exit code " + strconv.Itoa(int(t.ExitCode))}
}
