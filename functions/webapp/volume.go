package webapp

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/build"
)

// tmpLimit is the size limit of /tmp, a quantity, unless the application's container has a
// limit of ephemeral storage.
const tmpLimit = "1Gi"

// volumes returns the volumes of a pod whose application's container has the given limits.
func (a *app) volumes(limits corev1.ResourceList) []corev1.Volume {
	limit := tmpLimit
	if own, ok := limits[corev1.ResourceEphemeralStorage]; ok {
		limit = own.String()
	}
	out := []corev1.Volume{build.Tmp(limit)}
	for _, v := range a.spec.Volumes {
		out = append(out, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{
			ConfigMap:             v.ConfigMap,
			Secret:                v.Secret,
			EmptyDir:              v.EmptyDir,
			PersistentVolumeClaim: v.PersistentVolumeClaim,
		}})
	}
	return out
}

// mounts returns the volume mounts of each container.
func (a *app) mounts() []corev1.VolumeMount {
	out := []corev1.VolumeMount{build.TmpMount()}
	for _, v := range a.spec.Volumes {
		out = append(out, corev1.VolumeMount{Name: v.Name, MountPath: v.MountPath, ReadOnly: v.ReadOnly || v.ConfigMap != nil || v.Secret != nil})
	}
	return out
}
