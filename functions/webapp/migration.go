package webapp

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
)

// migrationName is a new one for each image and each way to call it, so that
// each is migrated to once.
func (a *app) migrationName() string {
	m := a.spec.Migration
	return migration + "-" + build.Digest(string(a.spec.Image), strings.Join(m.Command, "\x00"), strings.Join(m.Args, "\x00"))
}

// migrationJob is tried again a few times: a database may be failing over.
func (a *app) migrationJob(name string) *batchv1.Job {
	pod := a.pod(a.container(migration, a.spec.Migration.Command, a.spec.Migration.Args))
	pod.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: a.Named(a.Name(name), migration, a.name()),
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(4)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: a.Labels(migration, a.name())},
				Spec:       pod,
			},
		},
	}
}
