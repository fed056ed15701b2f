package databasecluster

import (
	"encoding/json"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// systemAnnotation is an annotation of a CronJob with the stanza that its backups are in. A stanza
// begins with the system identifier.
const systemAnnotation = "storeplane.example.com/system"

// backupDeadline is how many seconds a Job may run, so that none hangs forever.
const backupDeadline = 24 * 60 * 60

// backupLabels returns the labels by which the provider finds the Jobs of the Backup.
func (d *cluster) backupLabels() map[string]string {
	return build.With(d.Labels(backups, d.server), map[string]string{
		backupv1.BackupLabel: d.backupName(),
		backupv1.ActionLabel: string(backup.Backup),
	})
}

// backupCronJob returns the CronJob that makes backups with pgBackRest, from a
// standby if there is one.
func (d *cluster) backupCronJob(component, schedule string, full bool) *batchv1.CronJob {
	meta := d.Meta(component, d.server)
	meta.Labels = d.backupLabels()
	meta.Annotations = map[string]string{systemAnnotation: d.live.cluster.StanzaName()}
	job := d.backupJob(full, d.backup.fullEvery())
	job.BackoffLimit = new(int32(2))
	return &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "CronJob"},
		ObjectMeta: meta,
		Spec: batchv1.CronJobSpec{
			Schedule:                   schedule,
			TimeZone:                   new("Etc/UTC"),
			ConcurrencyPolicy:          batchv1.ForbidConcurrent,
			Suspend:                    new(d.spec.Hibernated),
			StartingDeadlineSeconds:    new(int64(3600)),
			SuccessfulJobsHistoryLimit: new(int32(3)),
			FailedJobsHistoryLimit:     new(int32(3)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: d.backupLabels()},
				Spec:       job,
			},
		},
	}
}

// firstBackup returns a Job that makes a full backup at once. It is retried more often than
// scheduled ones, since the repository may be being set up meanwhile.
func (d *cluster) firstBackup(component string) *batchv1.Job {
	meta := d.Meta(component, d.server)
	meta.Labels = d.backupLabels()
	job := d.backupJob(true, 0)
	job.BackoffLimit = new(int32(6))
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: meta,
		Spec:       job,
	}
}

func (d *cluster) backupJob(full bool, every int) batchv1.JobSpec {
	return batchv1.JobSpec{
		ActiveDeadlineSeconds: new(int64(backupDeadline)),
		PodReplacementPolicy:  new(batchv1.Failed),
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				ContainerName: new(backup.Container), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{backup.ExitPermanent},
			},
		}}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: build.PodMeta(d.backupLabels(), nil, &d.spec.PodOptions),
			Spec:       d.backupPod(full, every),
		},
	}
}

// backupTask returns the task of the program backup, as JSON.
func (d *cluster) backupTask(full bool, every int) string {
	t := backup.Task{
		Action: backup.Backup, Method: backupv1.Physical, Namespace: d.Namespace, Name: d.Claim,
		Database:    backup.Database{Engine: d.traits.Type},
		Destination: d.backup.destination, Retention: d.backup.retention, Encrypted: d.backup.encryption != nil,
		Full: full, FullEvery: every, Stanza: d.live.cluster.StanzaName(),
	}
	for i := range d.spec.Size {
		t.Hosts = append(t.Hosts, d.serverHost(i))
	}
	b, err := json.Marshal(t)
	if err != nil {
		// It cannot fail: this task has no time, and all else can be written as JSON.
		return ""
	}
	return string(b)
}

func (d *cluster) backupPod(full bool, every int) corev1.PodSpec {
	pod := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		ServiceAccountName:            d.Name(backups),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(60)),
		SecurityContext:               build.PodSecurity(d.traits.User, d.traits.User),
		Containers: []corev1.Container{{
			Name:                     backup.Container,
			Image:                    d.settings.Image(images.Backup(d.server + "-" + d.release.Series)),
			Env:                      []corev1.EnvVar{{Name: backup.TaskVariable, Value: d.backupTask(full, every)}},
			TerminationMessagePath:   backup.TerminationLog,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			Resources:                build.Resources("100m", "128Mi", "512Mi"),
			SecurityContext:          build.ContainerSecurity(),
			VolumeMounts: []corev1.VolumeMount{
				build.TmpMount(),
				{Name: repository, MountPath: backup.RepositoryDir, ReadOnly: true},
			},
		}},
		Volumes: []corev1.Volume{
			build.Tmp(tmpLimit),
			secretVolume(repository, d.Name(backupTLS), pgbackrest.FileAuthority, pgbackrest.FileCertificate, pgbackrest.FileKey),
		},
	}
	d.mountStore(&pod, &pod.Containers[0])
	d.placeBeside(&pod)
	if d.backup.isVolume() {
		pod.Volumes = append(pod.Volumes, claimVolume(d.backup.destination.Bucket))
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: backup.DestinationVolume, MountPath: backup.VolumeDir})
		// Most volumes can be mounted on one node at a time only.
		if pod.Affinity == nil {
			pod.Affinity = &corev1.Affinity{}
		}
		pod.Affinity.PodAffinity = &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: d.Selector(d.servedBy())},
			}},
		}
	}
	return pod
}

// mountStore mounts the Secrets that pgBackRest needs to write into the store. One that was deleted
// must not keep a pod from starting: the program that needs it reports that.
func (d *cluster) mountStore(pod *corev1.PodSpec, containers ...*corev1.Container) {
	mount := func(v corev1.Volume, path string) {
		v.Secret.Optional = new(true)
		pod.Volumes = append(pod.Volumes, v)
		for _, c := range containers {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: path, ReadOnly: true})
		}
	}
	if s := d.backup.secret(); s != "" {
		mount(secretVolume(backup.StoreVolume, s), backup.StoreDir)
	}
	if e := d.backup.encryption; e != nil {
		v := secretVolume(backup.KeyVolume, e.Name)
		v.Secret.Items = []corev1.KeyToPath{{Key: e.Key, Path: backup.KeyFileName}}
		mount(v, backup.KeyDir)
	}
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: backup.DestinationVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}
