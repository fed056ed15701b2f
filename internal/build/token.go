package build

import corev1 "k8s.io/api/core/v1"

// token is the volume with what a ServiceAccount reaches the API server by. The kubelet
// mounts such a volume into all containers of a pod unless told not to; these are for
// those containers that need it:
// https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#launch-a-pod-using-service-account-token-projection.
const (
	token     = "token"
	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a folder's name
)

// tokenSeconds is for how long a token is good. The kubelet renews it before.
const tokenSeconds = 3607

// Token is the volume with the token of the pod's ServiceAccount, the API server's
// authority, and the namespace, under the names that clients look for.
func Token() corev1.Volume {
	return corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o440)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}

// TokenMount is where a container has it.
func TokenMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: token, MountPath: tokenPath, ReadOnly: true}
}
