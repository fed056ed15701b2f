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
	// DigestAnnotation holds the digest of what a Job reaches.
	DigestAnnotation = "backup.example.com/digest"

	// ValueAnnotation holds the value of the annotation by which a user requested a Job.
	ValueAnnotation = "backup.example.com/value"

	// AttemptAnnotation holds the number of a Job among those for the same purpose.
	AttemptAnnotation = "backup.example.com/attempt"
)

// kept is how long a finished Job stays if the controller does not remove it: long enough for a
// provider that was down to read its result.
const kept = 7 * 24 * time.Hour

// deadline returns how long a Job for an action may run, so that none hangs for ever.
func deadline(a backup.Action) time.Duration {
	switch a {
	case backup.Check:
		return 10 * time.Minute
	case backup.Delete:
		return 2 * time.Hour
	case backup.Backup, backup.Verify, backup.Serve, backup.Restore:
	}
	return 24 * time.Hour
}

// retries is how often an action is retried within one Job. A restore finds by its lock in the
// database what an earlier pod wrote, and starts over.
const retries = 2

// JobSpec returns the spec of a Job that runs a pod for an action.
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
				Values:   []int32{backup.ExitPermanent},
			},
		},
		{
			// A drained node is not a failure of the action.
			Action:          batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
		},
	}}
}

// Once changes a Job so that it runs only one pod, without a retry after a failure or a drained
// node.
func Once(j *batchv1.Job) {
	j.Spec.BackoffLimit = new(int32)
	j.Spec.PodFailurePolicy.Rules = j.Spec.PodFailurePolicy.Rules[:1]
}

// Job returns a Job that runs a pod for an action.
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

// Schedule is when a CronJob runs.
type Schedule struct {
	Cron     string
	TimeZone string
	Suspend  bool

	// Period is the longest time between two runs.
	Period time.Duration
}

// history is how many successful and how many failed Jobs a CronJob keeps.
const history = 3

// CronJob returns a CronJob that runs a pod for an action on a schedule. Of the runs that were
// missed only the last one is made up for, since the starting deadline is the period. Runs do not
// overlap.
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
