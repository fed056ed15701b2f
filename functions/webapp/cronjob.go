package webapp

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

func (a *app) cronJob(j *appsv1.CronJob) *batchv1.CronJob {
	component := cron + "-" + j.Name
	pod := a.pod(a.container(cron, j.Command, j.Args))
	pod.RestartPolicy = corev1.RestartPolicyNever

	cj := &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"},
		ObjectMeta: a.Meta(component, a.name()),
		Spec: batchv1.CronJobSpec{
			Schedule:                   string(j.Schedule),
			ConcurrencyPolicy:          batchv1.ForbidConcurrent,
			StartingDeadlineSeconds:    new(int64(300)),
			SuccessfulJobsHistoryLimit: new(int32(3)),
			FailedJobsHistoryLimit:     new(int32(3)),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				BackoffLimit: new(int32(2)),
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: a.Labels(component, a.name())},
					Spec:       pod,
				},
			}},
		},
	}
	if j.TimeZone != "" {
		cj.Spec.TimeZone = &j.TimeZone
	}
	return cj
}
