package build

import corev1 "k8s.io/api/core/v1"

// token is the volume with the credentials by which a ServiceAccount accesses the API server. The
// kubelet mounts such a volume into all containers of a pod unless that is turned off; this one is
// only for the containers that need it:
// https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#launch-a-pod-using-service-account-token-projection.
const (
	token     = "token"
	tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // a folder's name
)

// tokenSeconds is the lifetime of a token. The kubelet renews it before it expires.
const tokenSeconds = 3607

// Token returns the volume with the token of the pod's ServiceAccount, the API server's authority,
// and the namespace, under the names that clients expect.
func Token() corev1.Volume {
	return corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(0o440)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: corev1.ServiceAccountTokenKey, ExpirationSeconds: new(int64(tokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: corev1.ServiceAccountRootCAKey, Path: corev1.ServiceAccountRootCAKey}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: corev1.ServiceAccountNamespaceKey, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}}
}

// TokenMount returns the mount of that volume in a container.
func TokenMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: token, MountPath: tokenPath, ReadOnly: true}
}
