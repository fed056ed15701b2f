package workload

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
)

// ThrowAway is the name of the container with the throw-away server, into which a backup is
// restored to verify it, and which copies the files of a MySQL. A backup may contain programs, so
// no Secret is mounted there.
const ThrowAway = "throw-away"

// Annotations of pods that name the containers into which the webhook of a cloud puts no
// credentials of the pod's ServiceAccount:
// https://github.com/aws/amazon-eks-pod-identity-webhook#eks-walkthrough and
// https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html.
const (
	skipAWS   = "eks.amazonaws.com/skip-containers"
	skipAzure = "azure.workload.identity/skip-containers"
)

// addThrowAway adds the container of the throw-away server beside the container with the index at,
// which reads the store and has the volume scratch. The server is that of the given image, or of the same
// one if it is "", and gets the given resources. It is a sidecar, so it runs for as long as that container.
func addThrowAway(pod *corev1.PodTemplateSpec, at int, task backup.Task, image string, resources *corev1.ResourceRequirements) error {
	const private, socket, archive = build.TmpVolume + "-" + ThrowAway, "socket", "archive"
	serve := backup.Task{Action: backup.Serve, Method: task.Method, Namespace: task.Namespace, Name: task.Name, Database: task.Database}
	if copies(&task) {
		serve.For = task.Action
	}
	value, err := encode(serve)
	if err != nil {
		return err
	}
	work := &pod.Spec.Containers[at]
	c := corev1.Container{
		Name:                     ThrowAway,
		Image:                    work.Image,
		ImagePullPolicy:          work.ImagePullPolicy,
		Env:                      []corev1.EnvVar{{Name: backup.TaskVariable, Value: value}},
		RestartPolicy:            new(corev1.ContainerRestartPolicyAlways),
		TerminationMessagePath:   work.TerminationMessagePath,
		TerminationMessagePolicy: work.TerminationMessagePolicy,
		SecurityContext:          work.SecurityContext.DeepCopy(),
		VolumeMounts: []corev1.VolumeMount{
			{Name: private, MountPath: build.TmpDir}, {Name: scratch, MountPath: backup.ScratchDir}, {Name: socket, MountPath: backup.SocketDir},
		},
	}
	if image != "" {
		// It runs another program by default.
		c.Image, c.Command = image, []string{backup.Program}
	}
	bound(&c, backup.Verify, resources)
	volumes := []corev1.Volume{emptyDir(private, tmpLimit), emptyDir(socket, tmpLimit)}
	work.VolumeMounts = append(work.VolumeMounts, corev1.VolumeMount{Name: socket, MountPath: backup.SocketDir, ReadOnly: true})
	if task.Method == backupv1.Physical && !copies(&task) {
		// It recovers with WAL that the container beside sends.
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: archive, MountPath: backup.ArchiveDir, ReadOnly: true})
		volumes = append(volumes, emptyDir(archive, tmpLimit))
		work.VolumeMounts = append(work.VolumeMounts, corev1.VolumeMount{Name: archive, MountPath: backup.ArchiveDir})
	}
	pod.Spec.InitContainers = append(slices.Clone(pod.Spec.InitContainers), c)
	pod.Spec.Volumes = append(pod.Spec.Volumes, volumes...)
	pod.Annotations = maps.Clone(pod.Annotations)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[skipAWS], pod.Annotations[skipAzure] = ThrowAway, ThrowAway
	return nil
}

// copies reports whether the backups of a Task are copies of the files of a MySQL. A throw-away server makes such a
// copy by MySQL's clone plugin, and starts from it to prove it.
func copies(t *backup.Task) bool {
	return t.Method == backupv1.Physical && t.Database.Engine == backupv1.MySQL
}
