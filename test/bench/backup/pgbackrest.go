package main

import (
	"context"
	"encoding/json"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// pgBackRest measures a full backup by a Job from the DatabaseCluster's own CronJob. It does not
// measure memory.
func (b *bench) pgBackRest(ctx context.Context) (sample, error) {
	cron := claimName + "-backup-full"
	err := b.world.Await(ctx, started, "CronJob "+cron, func() (bool, string) {
		return b.world.Get("CronJob", cron) != nil, "there is none"
	})
	if err != nil {
		return sample{}, err
	}
	from, err := b.cluster.Kube.BatchV1().CronJobs(namespace).Get(ctx, cron, metav1.GetOptions{})
	if err != nil {
		return sample{}, fmt.Errorf("cannot get CronJob %s: %w", cron, err)
	}
	const name = "pgbackrest"
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: from.Spec.JobTemplate.Labels},
		Spec:       from.Spec.JobTemplate.Spec,
	}
	if _, err := b.cluster.Kube.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return sample{}, fmt.Errorf("cannot start Job %s: %w", name, err)
	}
	err = b.world.Await(ctx, measured, "pgBackRest to be done", func() (bool, string) {
		j := b.world.Get("Job", name)
		return harness.Number(j, "status", "succeeded")+harness.Number(j, "status", "failed") > 0, "it is not"
	})
	if err != nil {
		return sample{}, err
	}
	pods, err := b.cluster.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
	if err != nil {
		return sample{}, fmt.Errorf("cannot list the pods of Job %s: %w", name, err)
	}
	for i := range pods.Items {
		if r, ok := reportOf(&pods.Items[i]); ok {
			if r.Failure != nil {
				return sample{}, fmt.Errorf("pgBackRest failed: %s", r.Failure.Message)
			}
			return sample{seconds: r.Finished.Sub(r.Started).Seconds()}, nil
		}
	}
	return sample{}, fmt.Errorf("cannot find the report of Job %s", name)
}

// reportOf returns the report of a pod that has ended, or false if it has none.
func reportOf(p *corev1.Pod) (backup.Report, bool) {
	for _, s := range p.Status.ContainerStatuses {
		r := backup.Report{}
		if t := s.State.Terminated; t != nil && json.Unmarshal([]byte(t.Message), &r) == nil && r.Action != "" {
			return r, true
		}
	}
	return backup.Report{}, false
}
