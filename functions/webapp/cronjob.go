package webapp

import (
	"cmp"
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

func cronComponent(j *appsv1.CronJob) string { return cron + "-" + j.Name }

func (a *app) cronJob(j *appsv1.CronJob) *batchv1.CronJob {
	component := cronComponent(j)
	c := a.container(cron, j.Command, j.Args)
	if j.Resources != nil {
		c.Resources = *j.Resources
	}
	pod := a.jobPod(c)
	meta := a.Meta(component, a.name())
	meta.Annotations = a.allowance

	cj := &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"},
		ObjectMeta: meta,
		Spec: batchv1.CronJobSpec{
			Schedule:                   string(j.Schedule),
			ConcurrencyPolicy:          cmp.Or(j.ConcurrencyPolicy, batchv1.ForbidConcurrent),
			Suspend:                    j.Suspend,
			StartingDeadlineSeconds:    or(j.StartingDeadlineSeconds, 300),
			SuccessfulJobsHistoryLimit: or(j.SuccessfulJobsHistoryLimit, 3),
			FailedJobsHistoryLimit:     or(j.FailedJobsHistoryLimit, 3),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: a.podLabels(component)},
				Spec: batchv1.JobSpec{
					BackoffLimit:          or(j.BackoffLimit, 2),
					ActiveDeadlineSeconds: j.ActiveDeadlineSeconds,
					Template: corev1.PodTemplateSpec{
						ObjectMeta: a.podMeta(component),
						Spec:       pod,
					},
				},
			},
		},
	}
	if j.TimeZone != "" {
		cj.Spec.TimeZone = &j.TimeZone
	}
	if a.isHeld(j) {
		cj.Spec.Suspend = new(true)
		cj.Annotations = maps.Clone(cj.Annotations)
		metav1.SetMetaDataAnnotation(&cj.ObjectMeta, heldAnnotation, "true")
	}
	return cj
}

// cronJobComponent returns the component of a CronJob, which runs nothing before the application is healthy
// for the first time. Until then it exists suspended, with all else that the claim composes: to create it
// later would be one more generation of the claim, with four writes to it.
func (a *app) cronJobComponent(j *appsv1.CronJob, after, gates []string) compose.Component {
	c := compose.Component{Name: cronComponent(j), Make: func() compose.Object { return a.cronJob(j) }, After: []string{web}, ChangeAfter: gates}
	if a.isHeld(j) {
		c.Paused, c.After, c.ChangeAfter, c.RetryAfter = true, after, []string{web}, []string{web}
	}
	return c
}

// isHeld reports whether a CronJob is suspended because the application has yet to become healthy, and not
// because the claim suspends it. One that has been started is not suspended again.
func (a *app) isHeld(j *appsv1.CronJob) bool {
	if a.live.review || a.live.serves || j.Suspend != nil && *j.Suspend {
		return false
	}
	l, exists := a.live.cronJobs[j.Name]
	return !exists || l.Metadata.Annotations[heldAnnotation] != ""
}

// heldAnnotation is on a CronJob that is suspended until the application is healthy for the first time.
const heldAnnotation = "storeplane.example.com/suspended-until-healthy"

// liveCronJob is the part of an observed CronJob that the function reads.
type liveCronJob struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Suspend bool `json:"suspend"`
	} `json:"spec"`
	Status batchv1.CronJobStatus `json:"status"`
}

// observeCronJobs returns those of the claim's CronJobs that exist, by their names in the claim.
func observeCronJobs(c *compose.Claim, jobs []appsv1.CronJob) (map[string]liveCronJob, error) {
	out := map[string]liveCronJob{}
	for i := range jobs {
		l := liveCronJob{}
		ok, err := c.ReadObserved(cronComponent(&jobs[i]), &l)
		if err != nil {
			return nil, err
		}
		if ok {
			out[jobs[i].Name] = l
		}
	}
	return out, nil
}

// cronJobStatus returns the status of each CronJob of the claim that exists, in the claim's order.
func (a *app) cronJobStatus() []appsv1.CronJobStatus {
	var out []appsv1.CronJobStatus
	for _, j := range a.spec.CronJobs {
		l, ok := a.live.cronJobs[j.Name]
		if !ok {
			continue
		}
		out = append(out, appsv1.CronJobStatus{
			Name:               j.Name,
			LastResult:         lastResult(&l.Status),
			LastScheduleTime:   l.Status.LastScheduleTime,
			LastSuccessfulTime: l.Status.LastSuccessfulTime,
			Active:             int32(len(l.Status.Active)), //nolint:gosec // a handful
			Suspended:          l.Spec.Suspend,
		})
	}
	return out
}

// lastResult derives the result of the last run from a CronJob's status: the CronJob controller
// removes a run from the active ones and records its success in one update.
func lastResult(s *batchv1.CronJobStatus) appsv1.CronJobResult {
	switch {
	case len(s.Active) > 0:
		return appsv1.CronJobRunning
	case s.LastScheduleTime == nil:
		return ""
	case s.LastSuccessfulTime == nil || s.LastSuccessfulTime.Before(s.LastScheduleTime):
		return appsv1.CronJobFailed
	default:
		return appsv1.CronJobSucceeded
	}
}
