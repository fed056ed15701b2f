package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodSecurity returns a pod's half of the restricted pod security standard
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/). A uid of 0 leaves the
// user to the image, which must then name one that is not root.
func PodSecurity(uid, gid int64) *corev1.PodSecurityContext {
	ctx := &corev1.PodSecurityContext{
		RunAsNonRoot:   new(true),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if uid != 0 {
		ctx.RunAsUser, ctx.RunAsGroup, ctx.FSGroup = new(uid), new(gid), new(gid)
		// Without this the kubelet walks the whole volume at every start.
		ctx.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	}
	return ctx
}

// ContainerSecurity returns a container's half, with a read-only root file system.
func ContainerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		ReadOnlyRootFilesystem:   new(true),
	}
}

// BaselineSecurity returns a container's half of the baseline standard, for an image that needs
// root: with the container runtime's capabilities, except the one to forge packets, and a writable
// root file system.
func BaselineSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"NET_RAW"}},
	}
}

// Scratch returns a writable folder for a container with a read-only root file system. It is
// removed with the pod. The kubelet evicts a pod that writes more there than limit, a quantity, so
// that it does not fill the disk of its node.
func Scratch(name, limit string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse(limit))}}}
}

// TmpVolume is the name of the volume that containers with a read-only root mount at TmpDir.
const (
	TmpVolume = "tmp"
	TmpDir    = "/tmp"
)

// Tmp returns the volume of TmpDir with a limit on its size, a quantity.
func Tmp(limit string) corev1.Volume { return Scratch(TmpVolume, limit) }

// TmpMount returns the mount of that volume in a container.
func TmpMount() corev1.VolumeMount { return corev1.VolumeMount{Name: TmpVolume, MountPath: TmpDir} }

// Memory returns a folder in memory: its content counts towards the memory limit of the container
// that writes it.
func Memory(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}
}

// FromSecret returns an environment variable whose value is a key of a Secret.
func FromSecret(env, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: secret},
		Key:                  key,
	}}}
}

// FromField returns an environment variable whose value is a field of the pod.
func FromField(env, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: env, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}
