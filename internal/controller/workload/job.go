package workload

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/backup"
)

// Annotations of Jobs.
const (
	// DigestAnnotation is the digest of what a Job reaches.
	DigestAnnotation = "backup.example.com/digest"

	// ValueAnnotation is the value of the annotation that asked for a Job.
	ValueAnnotation = "backup.example.com/value"

	// AttemptAnnotation counts the Jobs for one and the same purpose.
	AttemptAnnotation = "backup.example.com/attempt"
)

// PermanentExit is the exit code of a failure that does not go away by trying
// again.
const PermanentExit = 42

// kept is how long a Job that nobody removed stays after its end: it is a net,
// and long enough for a provider that was down to read it.
const kept = 7 * 24 * time.Hour

// deadline of an action, so that nothing hangs for ever.
func deadline(a backup.Action) time.Duration {
	switch a {
	case backup.Check:
		return 10 * time.Minute
	case backup.Delete:
		return 2 * time.Hour
	case backup.Backup, backup.Verify, backup.Restore:
	}
	return 24 * time.Hour
}

// retries of an action within one Job. A restore finds by its lock of the database
// what a pod before wrote, and starts over.
const retries = 2

// JobSpec that runs a pod for an action.
func JobSpec(a backup.Action, pod corev1.PodTemplateSpec) batchv1.JobSpec {
	return batchv1.JobSpec{
		BackoffLimit:          new(int32(retries)),
		ActiveDeadlineSeconds: new(int64(deadline(a) / time.Second)),
		PodReplacementPolicy:  new(batchv1.Failed),
		PodFailurePolicy:      failurePolicy(),
		Template:              pod,
	}
}

func failurePolicy() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
		{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn,
				Values:   []int32{PermanentExit},
			},
		},
		{
			// A drained node is no failure of the action.
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
	}}
}

// Once has a Job run one pod and no other.
func Once(j *batchv1.Job) {
	j.Spec.BackoffLimit = new(int32)
	j.Spec.PodFailurePolicy.Rules = j.Spec.PodFailurePolicy.Rules[:1]
}

// Job that runs once.
func Job(meta metav1.ObjectMeta, a backup.Action, pod corev1.PodTemplateSpec) *batchv1.Job {
	meta.Labels = Labelled(meta.Labels, a)
	spec := JobSpec(a, pod)
	spec.TTLSecondsAfterFinished = new(int32(kept / time.Second))
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: meta,
		Spec:       spec,
	}
}

// Schedule of a CronJob.
type Schedule struct {
	Cron     string
	TimeZone string
	Suspend  bool

	// Period is the longest time between two runs.
	Period time.Duration
}

// history is how many Jobs of each end a CronJob keeps.
const history = 3

// CronJob that runs on a schedule. Of the runs that were missed the last one is
// made up for, since its deadline is the period; none runs beside another.
func CronJob(meta metav1.ObjectMeta, s Schedule, a backup.Action, pod corev1.PodTemplateSpec) *batchv1.CronJob {
	meta.Labels = Labelled(meta.Labels, a)
	cj := &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"},
		ObjectMeta: meta,
		Spec: batchv1.CronJobSpec{
			Schedule:                   s.Cron,
			Suspend:                    new(s.Suspend),
			ConcurrencyPolicy:          batchv1.ForbidConcurrent,
			StartingDeadlineSeconds:    new(int64(max(s.Period, time.Minute) / time.Second)),
			SuccessfulJobsHistoryLimit: new(int32(history)),
			FailedJobsHistoryLimit:     new(int32(history)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: meta.Annotations},
				Spec:       JobSpec(a, pod),
			},
		},
	}
	if s.TimeZone != "" {
		cj.Spec.TimeZone = new(s.TimeZone)
	}
	return cj
}
